//! Go programs: rules from `.gopclntab`, the table that Go's own runtime unwinds by. It is in every Go program, stripped
//! or not, and gives the distance of the stack pointer from the CFA at each instruction.
//!
//! Frame pointers alone would leave out the caller of every function without a frame of its own, as leaves are, and
//! end where the runtime changes to its own stack.
//!
//! The layout is that of `pcHeader` and `_func` in Go's runtime (runtime/symtab.go, runtime/runtime2.go) and
//! internal/abi/symtab.go, since Go 1.18. x86_64 only: on aarch64 frame pointers lose no callers.

use std::ops::Range;

use abi::table::{Rule, cfa, fp};

use crate::architecture::Architecture;
use crate::frames::cursor::Cursor;
use crate::image::Image;
use crate::limits::MAX_GO_ROWS;

/// `internal/abi.Go118PCLnTabMagic` and `Go120PCLnTabMagic`.
const MAGICS: [(u32, Layout); 2] = [(0xffff_fff0, Layout { flags: 37 }), (0xffff_fff1, Layout { flags: 41 })];
/// Bytes of `pcHeader`.
const HEADER: usize = 72;
/// `internal/abi.FuncFlagTopFrame`: nothing called it.
const TOP_FRAME: u8 = 1;
/// `internal/abi.FuncFlagSPWrite`: it goes to another stack.
const SP_WRITE: u8 = 2;
/// `internal/abi.FuncFlagAsm`.
const ASM: u8 = 4;
/// Flagged as a top frame, but called by the kernel, which left a signal frame.
const SIGNAL_HANDLER: &[u8] = b"runtime.sigtramp";
/// Recognised by their code.
const SIGNAL_RETURNS: [&[u8]; 2] = [b"runtime.sigreturn__sigaction", b"runtime.sigreturn"];

/// What differs between versions of `_func`.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Where the byte of flags is.
    flags: usize,
}

/// Calls `found` with the place in the file and the rule of each stretch of Go code.
pub(crate) fn find(image: &Image, mut found: impl FnMut(Range<u64>, Rule)) {
    if image.architecture() != Architecture::X86_64 {
        return;
    }
    let Some(section) = image.sections().find(|section| section.name == b".gopclntab") else { return };
    let Some(table) = Table::read(section.bytes) else { return };
    let Some(text) = table.text(image) else { return };
    let mut rows = Vec::new();
    // steps of decoding that are left: a damaged table could let every function decode the whole of it
    let mut left = MAX_GO_ROWS;
    for index in 0..table.functions {
        let Some(function) = table.function(index) else { return };
        let begin = image.vaddr_to_file_offset(text.wrapping_add(function.begin.into()));
        let Some(begin) = begin.filter(|begin| *begin < image.size()) else { continue };
        let code = image.file_bytes(begin, (function.end - function.begin).into());
        if image.entry() == Some(begin) || SIGNAL_RETURNS.contains(&function.name) {
            continue;
        }
        rows.clear();
        if left == 0 {
            return;
        }
        if table.rows(&function, code, &mut left, &mut rows).is_none() {
            continue;
        }
        for (place, rule) in &rows {
            found(begin + u64::from(place.start)..begin + u64::from(place.end), *rule);
        }
    }
}

/// The table of a file.
struct Table<'a> {
    layout: Layout,
    functions: usize,
    /// `pcHeader.textStart`; 0 since Go 1.26.
    text_start: u64,
    names: &'a [u8],
    /// Encoded tables of values by pc.
    values: &'a [u8],
    /// Entry points and places of functions, then the functions.
    entries: &'a [u8],
}

/// A function.
struct Function<'a> {
    /// First byte, from the start of the text.
    begin: u32,
    end: u32,
    name: &'a [u8],
    flags: u8,
    /// Where its stack pointer's distances are in `values`.
    distances: u32,
}

impl<'a> Table<'a> {
    fn read(bytes: &'a [u8]) -> Option<Table<'a>> {
        let mut header = Cursor::new(bytes.get(..HEADER)?);
        let magic = header.u32()?;
        let (_, layout) = MAGICS.into_iter().find(|(number, _)| *number == magic)?;
        // two zeros, the size of the smallest instruction, the size of a pointer
        if header.bytes(4)? != [0, 0, 1, 8] {
            return None;
        }
        let functions = usize::try_from(header.u64()?).ok()?;
        let _files = header.u64()?;
        let text_start = header.u64()?;
        let mut part = || bytes.get(usize::try_from(header.u64()?).ok()?..);
        let names = part()?;
        let (_units, _files) = (part()?, part()?);
        let (values, entries) = (part()?, part()?);
        (functions > 0 && functions <= entries.len() / 8).then_some(Table {
            layout,
            functions,
            text_start,
            names,
            values,
            entries,
        })
    }

    fn function(&self, index: usize) -> Option<Function<'a>> {
        let word = |at: usize| Some(u32::from_le_bytes(*self.entries.get(at..)?.first_chunk()?));
        let (begin, at, end) = (word(index * 8)?, word(index * 8 + 4)? as usize, word(index * 8 + 8)?);
        let name = self.names.get(word(at.checked_add(4)?)? as usize..)?;
        // the names that matter are short; an endless one is not scanned to its end
        let name = name.get(..64).unwrap_or(name).split(|byte| *byte == 0).next()?;
        let (distances, flags) = (word(at + 16)?, *self.entries.get(at + self.layout.flags)?);
        (begin < end).then_some(Function { begin, end, name, flags, distances })
    }

    /// Address of the start of the text: one at which the program's entry point is a function, or the one that the
    /// runtime's description of the module gives.
    fn text(&self, image: &Image) -> Option<u64> {
        let section = image.sections().find(|section| section.name == b".text");
        let section = section.and_then(|section| image.file_offset_to_vaddr(section.file_offset));
        let entry = image.entry().and_then(|entry| image.file_offset_to_vaddr(entry));
        let at_entry =
            |text: &u64| entry.and_then(|entry| entry.checked_sub(*text)).is_some_and(|at| self.begins_at(at));
        let candidates = [Some(self.text_start).filter(|text| *text != 0), section];
        candidates.into_iter().flatten().find(at_entry).or_else(|| self.text_of_module(image))
    }

    fn begins_at(&self, offset: u64) -> bool {
        let (pairs, _) = self.entries.as_chunks::<8>();
        let begins = |pair: &[u8; 8]| u32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]]);
        pairs[..self.functions].binary_search_by_key(&offset, |pair| begins(pair).into()).is_ok()
    }

    /// `moduledata.text`: 22 words behind the pointer to `pcHeader`, and preceded by the first and the last pc.
    fn text_of_module(&self, image: &Image) -> Option<u64> {
        let section = image.sections().find(|section| section.name == b".gopclntab")?;
        let header = image.file_offset_to_vaddr(section.file_offset)?;
        let first = u64::from(self.function(0)?.begin);
        let last = u64::from(self.function(self.functions - 1)?.end);
        let data = image.sections().filter(|s| matches!(s.name, b".go.module" | b".noptrdata" | b".data"));
        // a sound file has one of each; many headers of the same bytes are not all searched
        data.take(3).flat_map(|section| section.bytes.as_chunks::<8>().0.windows(23)).find_map(|words| {
            let word = |index: usize| u64::from_le_bytes(words[index]);
            let text = word(22);
            let right =
                word(0) == header && word(20) == text.wrapping_add(first) && word(21) == text.wrapping_add(last);
            right.then_some(text)
        })
    }

    /// The rules of a function, by place in it.
    fn rows(
        &self,
        function: &Function<'_>,
        code: &[u8],
        left: &mut usize,
        rows: &mut Vec<(Range<u32>, Rule)>,
    ) -> Option<()> {
        let size = function.end - function.begin;
        *left -= 1;
        if function.flags & TOP_FRAME != 0 && function.name != SIGNAL_HANDLER {
            rows.push((0..size, Rule::END));
            return Some(());
        }
        let mut values = Cursor::new(self.values.get(function.distances as usize..)?);
        let (mut at, mut distance) = (0u32, -1i32);
        let mut saves = None;
        while at < size {
            *left = left.checked_sub(1)?;
            let step = values.uleb()?;
            if step == 0 && at > 0 {
                break;
            }
            let step = u32::try_from(step).ok()?;
            distance = distance.wrapping_add((step >> 1) as i32 ^ -((step & 1) as i32));
            let end = at.checked_add(u32::try_from(values.uleb()?).ok()?)?.min(size);
            if distance < 0 {
                return None;
            }
            if distance > 0 && saves.is_none() {
                // the compiler saves the frame pointer next to the return address; assembly may push other things
                saves = Some(function.flags & ASM == 0 || frame_pointer_set(code, at).is_some());
            }
            rows.push((at..end, rule(distance, saves == Some(true))));
            at = end;
        }
        if function.flags & SP_WRITE != 0 {
            other_stack(rows, code);
        }
        Some(())
    }
}

/// The rule where the stack pointer is `distance` below where it was when the function was entered, and whether its first
/// push saved the frame pointer.
fn rule(distance: i32, saves: bool) -> Rule {
    let rule = Rule { cfa: cfa::SP, cfa_offset: distance.saturating_add(8), ..Rule::NONE };
    if distance > 0 && saves {
        return Rule { fp: fp::AT_CFA, fp_offset: -16, ..rule };
    }
    rule
}

/// Where in a function the frame pointer has been set, if what moves the stack pointer first, and ends at `pushed`, saves
/// it. Before that there may be a check of the stack's size.
fn frame_pointer_set(code: &[u8], pushed: u32) -> Option<u32> {
    // push %rbp; mov %rsp,%rbp
    const SAVED: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];
    let push = pushed.checked_sub(1)?;
    code.get(push as usize..)?.starts_with(&SAVED).then_some(push + SAVED.len() as u32)
}

/// A function that goes to another stack: once it has set the frame pointer, which stays, that leads back to its own.
/// Before, the stack pointer is right. Without a frame pointer nothing is known.
fn other_stack(rows: &mut Vec<(Range<u32>, Rule)>, code: &[u8]) {
    let pushed = rows.iter().find(|(_, rule)| rule.cfa_offset > 8).map(|(place, _)| place.start);
    let Some(set) = pushed.and_then(|pushed| frame_pointer_set(code, pushed)) else { return rows.clear() };
    let own = rows.iter().position(|(place, _)| place.end > set).unwrap_or(rows.len());
    let last = rows.last().map_or(0, |(place, _)| place.end);
    // the epilogue pops the frame pointer
    let epilogue = rows[own..].iter().filter(|(_, rule)| rule.cfa_offset == 8).cloned().collect::<Vec<_>>();
    rows.truncate(own + 1);
    if let Some((place, _)) = rows.last_mut() {
        place.end = place.end.min(set);
    }
    let rule = Rule { cfa: cfa::OTHER_STACK, cfa_offset: 16, fp: fp::AT_CFA, fp_offset: -16, ..Rule::NONE };
    let mut behind = set;
    for (place, own) in epilogue.into_iter().filter(|(place, _)| place.start >= set) {
        rows.push((behind..place.start, rule));
        behind = place.end;
        rows.push((place, own));
    }
    rows.push((behind..last, rule));
    rows.retain(|(place, _)| place.start < place.end);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of a function of 32 bytes of assembly whose stack pointer moves as `values` say.
    fn rows(flags: u8, code: &[u8], values: &[u8]) -> Vec<(Range<u32>, Rule)> {
        let layout = MAGICS[1].1;
        let table = Table { layout, functions: 1, text_start: 0, names: &[], values, entries: &[] };
        let function = Function { begin: 0, end: 32, name: b"f", flags, distances: 0 };
        let mut rows = Vec::new();
        table.rows(&function, code, &mut 100, &mut rows).unwrap();
        rows
    }

    fn sp(offset: i32) -> Rule {
        Rule { cfa: cfa::SP, cfa_offset: offset, ..Rule::NONE }
    }

    /// The assembler checks the stack's size in front of the push, unless the function is marked NOSPLIT: cmp; jbe.
    #[test]
    fn assembly_that_saves_the_frame_pointer_behind_a_check() {
        const CHECK: [u8; 6] = [0x49, 0x3b, 0x66, 0x10, 0x76, 0x14];
        // push %rbp; mov %rsp,%rbp; sub $16,%rsp
        const PROLOGUE: [u8; 8] = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10];
        let saved = |offset| Rule { fp: fp::AT_CFA, fp_offset: -16, ..sp(offset) };
        // pairs of a step, zigzag, and bytes: 0 for 7, 8 for 7, 24 for 18; and for 1, 7, 24
        let (checked, plain) = ([2, 7, 16, 7, 32, 18], [2, 1, 16, 7, 32, 24]);
        let code = [&CHECK[..], &PROLOGUE].concat();
        assert_eq!(rows(ASM, &code, &checked), [(0..7, sp(8)), (7..14, saved(16)), (14..32, saved(32))]);
        assert_eq!(rows(ASM, &PROLOGUE, &plain), [(0..1, sp(8)), (1..8, saved(16)), (8..32, saved(32))]);
        // push %rbx; nop
        let other = [&CHECK[..], &[0x53, 0x90]].concat();
        assert_eq!(rows(ASM, &other, &checked), [(0..7, sp(8)), (7..14, sp(16)), (14..32, sp(32))]);
        assert_eq!(rows(0, &other, &checked)[1], (7..14, saved(16)), "the compiler always saves it");
        assert_eq!(rows(ASM, &[], &checked)[1], (7..14, sp(16)), "no code");
    }

    #[test]
    fn another_stack_is_followed_from_where_the_frame_pointer_is_set() {
        let code = [0x49, 0x3b, 0x66, 0x10, 0x76, 0x14, 0x55, 0x48, 0x89, 0xe5];
        let rows = rows(ASM | SP_WRITE, &code, &[2, 7, 16, 20, 15, 5]);
        let kinds: Vec<_> = rows.iter().map(|(place, rule)| (place.clone(), rule.cfa)).collect();
        let expected = [(0..7, cfa::SP), (7..10, cfa::SP), (10..27, cfa::OTHER_STACK), (27..32, cfa::SP)];
        assert_eq!(kinds, expected);
    }
}
