//! Our rules give the same caller as gimli's rows, expressions included.

mod common;

use std::path::{Path, PathBuf};

use abi::table::{Rule, cfa, unsupported};
use common::meaning::{Slice, Thread};
use common::{compile, library, mapped_files, open, table};
use gimli::{BaseAddresses, CieOrFde, EhFrame, RegisterRule, UnwindContext, UnwindSection};
use object::{Object, ObjectSection};
use objects::Architecture;

/// How many places were compared, by kind of rule.
#[derive(Default, Debug)]
struct Seen {
    places: usize,
    kinds: [usize; 10],
}

fn compare(path: &Path, seen: &mut Seen) {
    let (image, table) = table(path);
    let file = object::File::parse(image.bytes()).unwrap();
    let section = file.section_by_name(".eh_frame").unwrap();
    let mut eh_frame = EhFrame::new(section.data().unwrap(), gimli::LittleEndian);
    if image.architecture() == Architecture::Aarch64 {
        eh_frame.set_vendor(gimli::Vendor::AArch64);
    }
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let mut context = Box::new(UnwindContext::new());
    let mut entries = eh_frame.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        let mut rows = fde.rows(&eh_frame, &bases, &mut context).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            // BOLT leaves rows that begin where their function ends
            let range = row.start_address()..row.end_address();
            // the rules of PLT stubs depend on the pc
            for pc in range.clone().take(16).chain(range.clone().next_back()) {
                let rule = table.lookup(image.vaddr_to_file_offset(pc).unwrap());
                check(&image, &eh_frame, &fde, row, pc, &rule);
                seen.places += 1;
                seen.kinds[usize::from(rule.cfa)] += 1;
            }
        }
    }
}

fn check<'a>(
    image: &objects::Image,
    eh_frame: &EhFrame<Slice<'a>>,
    fde: &gimli::FrameDescriptionEntry<Slice<'a>>,
    row: &gimli::UnwindTableRow<usize>,
    pc: u64,
    rule: &Rule,
) {
    let architecture = image.architecture();
    let encoding = fde.cie().encoding();
    if rule.cfa == cfa::UNSUPPORTED {
        let ra = row.register(gimli::Register(architecture.return_address() as u16));
        assert_eq!(rule.register, unsupported::RETURN_ADDRESS, "at {pc:#x}");
        assert!(!matches!(ra, Some(RegisterRule::Offset(-8) | RegisterRule::Undefined)), "at {pc:#x}: {ra:?}");
        return;
    }
    for seed in 1..4 {
        let thread = Thread { architecture, pc, seed };
        let ours = thread.by_rule(rule);
        let theirs = thread.by_row(eh_frame, encoding, row);
        assert_eq!(rule.cfa == cfa::END, theirs.is_none(), "at {pc:#x}: {rule:?}");
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            assert_eq!((ours.0, ours.2), (theirs.0, theirs.2), "at {pc:#x}: {rule:?}");
            let corrected = is_at_itself(eh_frame, encoding, row) && common::may_have_given_back(rule);
            assert!(ours.1.is_none() || ours.1 == theirs.1 || corrected, "at {pc:#x}: {rule:?}");
        }
    }
}

/// Whether the caller's rbp is said to lie where rbp points.
fn is_at_itself(eh_frame: &EhFrame<Slice<'_>>, encoding: gimli::Encoding, row: &gimli::UnwindTableRow<usize>) -> bool {
    let Some(RegisterRule::Expression(expression)) = row.register(gimli::X86_64::RBP) else { return false };
    let mut operations = expression.get(eh_frame).unwrap().operations(encoding);
    let at_rbp = |operation| {
        matches!(operation, Some(gimli::Operation::RegisterOffset { register: gimli::X86_64::RBP, offset: 0, .. }))
    };
    at_rbp(operations.next().unwrap()) && operations.next().unwrap().is_none()
}

fn realigned(directory: &Path) -> Vec<PathBuf> {
    let ibt = ["-O2", "-fcf-protection=full", "-Wl,-z,ibtplt", "-Wl,-z,lazy"];
    let lazy = ["-O2", "-fcf-protection=none", "-Wl,-z,lazy"];
    [&ibt[..], &lazy, &["-O2", "-static"]].iter().map(|flags| compile(directory, "realign.c", flags)).collect()
}

#[test]
fn the_same_callers() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = mapped_files();
    files.extend(realigned(directory.path()));
    files.push(library("libstdc++.so.6"));
    let mut seen = Seen::default();
    for path in &files {
        compare(path, &mut seen);
    }
    let kinds = [cfa::END, cfa::SP, cfa::FP, cfa::REGISTER, cfa::DEREF_FP, cfa::PLT, cfa::SIGNAL];
    assert!(kinds.iter().all(|&kind| seen.kinds[usize::from(kind)] > 0), "not all kinds were there: {seen:?}");
}

#[test]
fn plt_stubs_of_both_kinds_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let thresholds = realigned(directory.path()).into_iter().take(2).map(|path| {
        let image = open(&path);
        let table = objects::UnwindTable::build(&image).unwrap();
        let plt = table.rules.iter().find(|rule| rule.cfa == cfa::PLT).unwrap();
        plt.cfa_offset
    });
    // binutils: the push of the stub ends at byte 9 behind an endbr64, else at byte 11
    assert_eq!(thresholds.collect::<Vec<_>>(), [9, 11]);
}
