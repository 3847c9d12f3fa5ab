//! One place, for those who have seen the two sides differ there on a live stack.

use gimli::UnwindContext;
use objects::{Image, UnwindTable};

use super::arbiter::Row;
use super::classify::classify;
use super::compare::{Comparison, with_sides};
use super::functions::{Functions, Section};
use super::gaps;
use super::kinds::Kind;
use super::thread::Mode;

/// The kind of the disagreement at a pc, which is given by its offset in the file; `None` if the two sides give the same
/// caller there, or if the file cannot be judged.
pub fn kind_at(image: &Image, offset: u64, mode: Mode) -> Option<Kind> {
    let table = UnwindTable::build(image).ok()?;
    let before_pc = match mode {
        Mode::Interrupted => offset,
        Mode::Called => offset.checked_sub(1)?,
    };
    let place = image.file_offset_to_vaddr(before_pc)?;
    with_sides(image, &table, "", |comparison, file, section, functions| {
        let code = comparison.code;
        let after = functions.list.partition_point(|function| function.begin <= place);
        match after.checked_sub(1).and_then(|index| functions.list.get(index)).filter(|f| place < f.end) {
            Some(_) => described(comparison, section, functions, after - 1, place, mode),
            None => undescribed(comparison, place, mode).then(|| gaps::kind_at(code, file, functions, place))?,
        }
    })
    .ok()?
}

fn undescribed(mut comparison: Comparison<'_, '_>, place: u64, mode: Mode) -> bool {
    comparison.differ(place, mode).is_some()
}

fn described<'d>(
    mut comparison: Comparison<'_, 'd>,
    section: &Section<'d>,
    functions: &Functions<'d>,
    index: usize,
    place: u64,
    mode: Mode,
) -> Option<Kind> {
    let difference = comparison.differ(place, mode)?;
    let fde = &functions.list.get(index)?.fde;
    let mut context = UnwindContext::new();
    let mut rows = fde.rows(&section.eh_frame, &section.bases, &mut context).ok()?;
    while let Ok(Some(row)) = rows.next_row() {
        if row.contains(place) {
            let row = Row { section, fde, row };
            return Some(classify(&row, &difference.thread, &difference.ours));
        }
    }
    Some(Kind::NotDecoded)
}
