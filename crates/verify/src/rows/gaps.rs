//! Code that no FDE describes. framehop guesses there, so this says how often the guesses are the same and what ours does
//! instead; it does not say who is right.

use std::ops::Range;

use abi::process::Mapping;
use abi::table::{Rule, cfa};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::{Object, ObjectSegment};

use super::compare::{Comparison, boundaries, places, split};
use super::functions::Functions;
use super::kinds::Kind;
use super::ours::Code;
use super::thread::Mode;

/// `endbr64`.
const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
/// Gaps below this are taken for padding by the table (`objects::limits::MIN_GAP`).
const PADDING: u64 = objects::limits::MIN_GAP;

/// Compares the gaps between functions.
pub(crate) fn compare(comparison: &mut Comparison<'_, '_>, file: &object::File<'_>, functions: &Functions<'_>) {
    let boundaries = boundaries(comparison.code.table, comparison.code.mappings);
    for mapping in comparison.code.mappings {
        let Some(segment) = Segment::of(file, mapping) else { continue };
        for gap in gaps(segment.range(), functions) {
            let code = segment.code(&gap);
            self::gap(comparison, gap, code, &boundaries);
        }
    }
}

/// The kind of a disagreement at a place that no function covers.
pub(crate) fn kind_at(code: Code<'_>, file: &object::File<'_>, functions: &Functions<'_>, place: u64) -> Option<Kind> {
    let segment = Segment::of(file, code.mapping(place)?)?;
    let gap = gaps(segment.range(), functions).into_iter().find(|gap| gap.contains(&place))?;
    let boundaries = boundaries(code.table, code.mappings);
    let interval = split(gap.clone(), &boundaries).find(|interval| interval.contains(&place))?;
    Some(kind(code, &gap, &interval, segment.code(&gap)))
}

/// The bytes of an executable segment.
struct Segment<'d> {
    begin: u64,
    bytes: &'d [u8],
}

impl<'d> Segment<'d> {
    fn of(file: &object::File<'d>, mapping: &Mapping) -> Option<Segment<'d>> {
        let segment = file.segments().find(|s| (mapping.begin..mapping.end).contains(&s.address()))?;
        Some(Segment { begin: segment.address(), bytes: segment.data().ok()? })
    }

    fn range(&self) -> Range<u64> {
        self.begin..self.begin + self.bytes.len() as u64
    }

    fn code(&self, gap: &Range<u64>) -> &'d [u8] {
        self.bytes.get((gap.start - self.begin) as usize..(gap.end - self.begin) as usize).unwrap_or_default()
    }
}

/// The parts of a segment that no function covers.
fn gaps(segment: Range<u64>, functions: &Functions<'_>) -> Vec<Range<u64>> {
    let (mut gaps, mut at) = (Vec::new(), segment.start);
    let within = |place: u64| functions.list.partition_point(|function| function.begin < place);
    for function in &functions.list[within(segment.start)..within(segment.end)] {
        if function.begin > at {
            gaps.push(at..function.begin);
        }
        at = function.end;
    }
    if at < segment.end {
        gaps.push(at..segment.end);
    }
    gaps
}

fn gap(comparison: &mut Comparison<'_, '_>, gap: Range<u64>, bytes: &[u8], boundaries: &[u64]) {
    comparison.report.undescribed_bytes += gap.end - gap.start;
    let code = comparison.code;
    for interval in split(gap.clone(), boundaries) {
        let kind = kind(code, &gap, &interval, bytes);
        let every = code.rule(interval.start).cfa == cfa::PLT;
        for place in places(interval, every) {
            for mode in [Mode::Interrupted, Mode::Called] {
                let difference = comparison.differ(place, mode);
                comparison.report.undescribed.count(difference.is_none());
                if let Some(difference) = difference {
                    comparison.report.disagree(kind, || difference.example(code, place));
                }
            }
        }
    }
}

fn kind(code: Code<'_>, gap: &Range<u64>, interval: &Range<u64>, bytes: &[u8]) -> Kind {
    let rule = code.rule(interval.start);
    // what is recognised begins another rule within the gap, or is longer
    let goes_on = gap.end - gap.start < PADDING && interval == gap && rule == code.rule(gap.start.wrapping_sub(1));
    match rule.cfa {
        cfa::NONE => Kind::NoFdeFramePointer,
        _ if !goes_on => Kind::NoFdeRecognised,
        _ if is_padding(bytes, &rule) => Kind::NoFdePadding,
        _ if is_clone(bytes) => Kind::NoFdeClone,
        _ if bytes == ENDBR64 => Kind::NoFdeEndbr,
        _ => Kind::NoFdeCode,
    }
}

/// Whether code does nothing, or traps: what compilers and linkers fill up with. Zeros are such a filling, too. A return
/// is no code of its own where the rule before is right for it.
fn is_padding(code: &[u8], rule: &Rule) -> bool {
    let returns = rule.cfa == cfa::SP && rule.cfa_offset == 8;
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    while decoder.can_decode() {
        if code[decoder.position()..].iter().all(|byte| *byte == 0) {
            return true;
        }
        match decoder.decode().mnemonic() {
            Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::Ud2 | Mnemonic::Hlt => {}
            Mnemonic::Ret if returns => {}
            _ => return false,
        }
    }
    true
}

/// `syscall; test %rax,%rax; jl error; je thread; ret` (sysdeps/unix/sysv/linux/x86_64/clone.S and clone3.S of glibc).
fn is_clone(code: &[u8]) -> bool {
    matches!(code, [0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, _, 0x74, _, 0xc3])
}
