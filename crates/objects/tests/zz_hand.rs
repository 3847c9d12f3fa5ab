//! Our rules give the same caller as gimli's rows, expressions included.

mod common;

use std::path::Path;

use abi::table::{Rule, cfa, unsupported};
use common::meaning::{Slice, Thread};
use common::table;
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
        if rule.register != unsupported::RETURN_ADDRESS { return; }
        assert!(!matches!(ra, Some(RegisterRule::Offset(-8) | RegisterRule::Undefined)), "at {pc:#x}: {ra:?}");
        return;
    }
    for seed in 1..4 {
        let thread = Thread { architecture, pc, seed };
        let ours = thread.by_rule(rule);
        if rule.cfa == cfa::SIGNAL && architecture == Architecture::Aarch64 { return; }
        let theirs = thread.by_row(eh_frame, encoding, row);
        assert_eq!(rule.cfa == cfa::END, theirs.is_none(), "at {pc:#x}: {rule:?}");
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            assert_eq!((ours.0, ours.2), (theirs.0, theirs.2), "at {pc:#x}: {rule:?}");
            assert!(ours.1.is_none() || ours.1 == theirs.1, "at {pc:#x}: {rule:?}");
        }
    }
}


#[test]
fn hand() {
    for path in std::env::var("FILES").unwrap().split_whitespace() {
        let mut seen = Seen::default();
        compare(Path::new(path), &mut seen);
        println!("{path}: {seen:?}");
    }
}
