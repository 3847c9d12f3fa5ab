//! What the sampler is told of an interpreter, and what it tells of code objects.

use abi::python::{CHECKS, CodeFacts, Entry, Moment, NONE, Piece, Python};
use abi::word::NO_INSTRUCTION;

use crate::code_object::{CodeLayout, CodeObject};
use crate::eval_loop::{EvalLoop, Links, PieceKind};
use crate::layout::Layout;
use crate::lines::lasti::Lasti;
use crate::strings::StringLayout;
use crate::{Memory, Ready, Unreadable};

const WORD: u32 = 8;

/// `co_version` of 3.12 to 3.15: a number that no other code object has had before (Objects/codeobject.c, `init_code`; measured by
/// ctypes on 3.12.1, 3.13.0, 3.13.18, 3.14.10 and 3.15.2: each code object, copies by `replace` too, has the next one).
const CODE_VERSION: u32 = 92;

impl Ready {
    /// What the sampler must know of an interpreter, except what only its user does.
    pub fn entry(&self) -> Entry {
        Entry { python: self.facts, code: self.layout.code_facts(), ..Entry::NONE }
    }
}

impl EvalLoop {
    /// The same for the sampler, of an interpreter with these facts. `None` if it is in more pieces than there is room for, or lies
    /// too far in its file.
    pub fn for_sampler(&self, python: &Python) -> Option<abi::python::EvalLoop> {
        let mut eval_loop = abi::python::EvalLoop::NONE;
        for (index, piece) in self.pieces.iter().enumerate() {
            *eval_loop.piece.get_mut(index)? =
                Piece { begin: u32::try_from(piece.begin).ok()?, end: u32::try_from(piece.end).ok()? };
            if piece.kind == PieceKind::Part {
                eval_loop.parts[index / 64] |= 1 << (index % 64);
            }
        }
        eval_loop.pieces = self.pieces.len() as u32;
        if self.links_as(python) {
            for (moment, found) in eval_loop.moment.iter_mut().zip(&self.moments) {
                let (begin, end) = (u32::try_from(found.begin).ok()?, u32::try_from(found.end).ok()?);
                *moment = Moment { begin, end, what: found.what.code() };
            }
            eval_loop.moments = self.moments.len() as u32;
        }
        Some(eval_loop)
    }

    /// Whether an interpreter links frames by the words that the moments were found by.
    fn links_as(&self, python: &Python) -> bool {
        self.links == Some(Links::of(python))
    }

    /// What is true of a thread of an interpreter that is interrupted at an offset of the file: one of [`abi::python::moment`], or 0.
    pub fn moment_at(&self, python: &Python, offset: u64) -> u32 {
        let truth = self.truth_at(offset).filter(|_| self.links_as(python));
        truth.map_or(0, |truth| truth.code())
    }
}

impl Layout {
    /// What the sampler reads of code objects.
    pub fn code_facts(&self) -> CodeFacts {
        let short = |offset: u32| u16::try_from(offset).unwrap_or(NONE);
        let (mut checked, mut masks) = ([NONE; CHECKS], [0; CHECKS]);
        for (index, (word, mask)) in self.checked_words().into_iter().take(CHECKS).enumerate() {
            (checked[index], masks[index]) = (short(word), mask);
        }
        CodeFacts {
            masks,
            checked,
            size: short(self.code.size),
            name: short(self.code.qualname.unwrap_or(self.code.name)),
            path: short(self.code.filename),
            lines: short(self.code.linetable),
            bytecode: self.code.bytecode.map_or(NONE, short),
            bytes_size: short(self.object.ob_size),
            bytes_data: short(self.text.bytes),
            text_length: if self.has_code_version() { 0 } else { short(self.text.length) },
            reserved: [0; 2],
        }
    }

    /// Whether each code object has a number of its own.
    fn has_code_version(&self) -> bool {
        self.version.minor >= 12 && !self.free_threaded
    }

    /// Words of a code object, with masks: its argument counts, flags and first line, each of 32 bits, and the addresses of its line
    /// table and its name. What shares a word with them may change (`co_warmup` of 3.11).
    fn checked_words(&self) -> Vec<(u32, u64)> {
        let code = &self.code;
        let numbers = [Some(code.argcount), code.posonlyargcount, Some(code.kwonlyargcount), Some(code.flags)];
        let mut words: Vec<(u32, u64)> = Vec::new();
        for number in numbers.into_iter().chain([Some(code.firstlineno)]).flatten() {
            let (word, mask) = (number / WORD * WORD, u64::from(u32::MAX) << (number % WORD * 8));
            match words.iter_mut().find(|(offset, _)| *offset == word) {
                Some((_, masks)) => *masks |= mask,
                None => words.push((word, mask)),
            }
        }
        words.push((code.linetable, u64::MAX));
        words.push((code.qualname.unwrap_or(code.name), u64::MAX));
        if self.has_code_version() {
            words.push((CODE_VERSION / WORD * WORD, u64::from(u32::MAX) << (CODE_VERSION % WORD * 8)));
        }
        words
    }
}

impl CodeObject {
    /// The line of a frame of this code object at `address`, whose word has this instruction ([`abi::word::python_at`]).
    pub fn line_of_sample(&self, address: u64, instruction: u32) -> crate::lines::Line {
        if instruction == NO_INSTRUCTION {
            return crate::lines::Line::Unknown;
        }
        self.line_of(match self.lasti {
            Lasti::ByteOffset | Lasti::UnitIndex => u64::from(instruction).wrapping_sub(1),
            Lasti::PreviousUnit | Lasti::InstructionPointer => address.wrapping_add(u64::from(instruction) << 1),
        })
    }
}

/// What the sampler has sent of a code object.
pub struct Sampled<'a> {
    /// Where it lies.
    pub address: u64,
    /// Its check, as it was when the sample was taken.
    pub check: u32,
    /// Addresses and bytes of memory, read soon after.
    pub pieces: Vec<(u64, &'a [u8])>,
}

impl Sampled<'_> {
    /// Reads it. What was not sent, since it was not in memory or is too long, is read from the `live` process as long as the same
    /// code object is there. `None` if it is another one by now, or if the process is gone.
    pub fn read<M: Memory>(
        &self,
        live: impl FnOnce() -> Option<M>,
        facts: &CodeFacts,
        code: &CodeLayout,
        strings: &StringLayout,
    ) -> Option<CodeObject> {
        let sent = Pieces { known: self.pieces.clone(), rest: Gone };
        match check_of(&sent, facts, self.address) {
            Some(check) if check != self.check => return None,
            Some(_) => {
                if let Ok(object) = CodeObject::read(&sent, self.address, code, strings) {
                    return Some(object);
                }
            }
            None => {}
        }
        let live = live()?;
        let whole = Pieces { known: self.pieces.clone(), rest: &live };
        let object = CodeObject::read(&whole, self.address, code, strings).ok()?;
        // after it was read: what it led to was its own all the time
        let is_same = |offset: &u16| {
            let field = self.address.wrapping_add(u64::from(*offset));
            matches!((whole.u64(field), live.u64(field)), (Ok(sent), Ok(now)) if sent == now)
        };
        let fields = [facts.name, facts.path, facts.lines];
        let is_one = check_of(&live, facts, self.address) == Some(self.check) && fields.iter().all(is_same);
        is_one.then_some(object)
    }
}

/// The check of the code object at `address`; `None` if it is not in this memory.
pub fn check_of(memory: &impl Memory, facts: &CodeFacts, address: u64) -> Option<u32> {
    struct Words<'a, M>(&'a M);
    impl<M: Memory> walk::cpython::Memory for Words<'_, M> {
        fn read_u64(&mut self, address: u64) -> Option<u64> {
            self.0.u64(address).ok()
        }
    }
    walk::cpython::check_of(&mut Words(memory), facts, address)
}

/// Memory of which some pieces are known, and the rest can be looked up.
pub struct Pieces<'a, M> {
    /// Addresses and bytes.
    pub known: Vec<(u64, &'a [u8])>,
    /// What is asked for all else.
    pub rest: M,
}

impl<M: Memory> Memory for Pieces<'_, M> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let mut done = 0;
        while done < into.len() {
            let at = address.wrapping_add(done as u64);
            let inside = |(begin, bytes): &&(u64, &[u8])| at.wrapping_sub(*begin) < bytes.len() as u64;
            let Some((begin, bytes)) = self.known.iter().find(inside) else {
                return self.rest.read(at, &mut into[done..]);
            };
            let from = &bytes[at.wrapping_sub(*begin) as usize..];
            let count = from.len().min(into.len() - done);
            into[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        Ok(())
    }
}

/// Memory of a process that is gone.
pub struct Gone;

impl Memory for Gone {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        Err(Unreadable { address, length: into.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use crate::layout::Platform;
    use proptest::prelude::*;

    #[test]
    fn words_that_are_checked() {
        let platform = Platform { architecture: objects::Architecture::X86_64, musl: false, free_threaded: false };
        let of = |minor| {
            let layout = Layout::measured(Version::release(3, minor, 9), platform).expect("measured");
            layout.checked_words()
        };
        let (low, high) = (u64::from(u32::MAX), u64::from(u32::MAX) << 32);
        let all = u64::MAX;
        assert_eq!(of(6), [(16, all), (32, all), (112, all), (104, all)]);
        assert_eq!(of(9), [(16, all), (24, low), (32, high), (40, low), (120, all), (112, all)]);
        assert_eq!(of(11), [(56, all), (64, low), (48, low), (72, low), (136, all), (128, all)]);
        assert_eq!(of(13), [(48, all), (56, all), (64, high), (136, all), (128, all), (88, high)]);
        assert!((6..=15).all(|minor| of(minor).len() <= CHECKS));
    }

    proptest! {
        /// Pieces may overlap, be empty, and go on at the beginning of memory.
        #[test]
        fn what_pieces_say_is_read(
            pieces in prop::collection::vec((near_the_end(), prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            reads in prop::collection::vec((near_the_end(), 0..60usize), 1..8),
        ) {
            let known = pieces.iter().map(|(address, bytes)| (*address, bytes.as_slice())).collect();
            let memory = Pieces { known, rest: Gone };
            let said = |address: u64| -> Vec<u8> {
                let of = |(begin, bytes): &(u64, Vec<u8>)| bytes.get(address.wrapping_sub(*begin) as usize).copied();
                pieces.iter().filter_map(of).collect()
            };
            for (address, length) in reads {
                let mut bytes = vec![0; length];
                let is_read = memory.read(address, &mut bytes).is_ok();
                // where pieces overlap, any of them may say what is there
                let said: Vec<Vec<u8>> = (0..length as u64).map(|index| said(address.wrapping_add(index))).collect();
                prop_assert_eq!(is_read, said.iter().all(|said| !said.is_empty()));
                prop_assert!(!is_read || bytes.iter().zip(&said).all(|(byte, said)| said.contains(byte)));
            }
        }
    }

    fn near_the_end() -> impl Strategy<Value = u64> {
        (0..120u64).prop_map(|distance| distance.wrapping_sub(60))
    }

    /// The sampler reads all fields of a frame at once, and all that it compares of a code object.
    #[test]
    fn fields_lie_near_each_other() {
        for architecture in [objects::Architecture::X86_64, objects::Architecture::Aarch64] {
            for (minor, free_threaded) in (6..=15).flat_map(|minor| [(minor, false), (minor, true)]) {
                let platform = Platform { architecture, musl: false, free_threaded };
                let Ok(layout) = Layout::measured(Version::release(3, minor, 9), platform) else { continue };
                let (frame, code) = (layout.facts(0, abi::python::Slot::default()), layout.code_facts());
                let spans = [walk::cpython::Span::of_frame(&frame), walk::cpython::Span::of_code(&code)];
                assert!(spans.iter().all(|span| span.fits()), "{platform:?} 3.{minor}");
            }
        }
    }

    #[test]
    fn pieces_come_before_the_rest() {
        let (one, two) = ([1u8, 2, 3, 4], [5u8, 6]);
        let memory = Pieces { known: vec![(100, &one[..]), (104, &two[..])], rest: Gone };
        let mut bytes = [0; 5];
        assert_eq!(memory.read(101, &mut bytes), Ok(()));
        assert_eq!(bytes, [2, 3, 4, 5, 6]);
        assert_eq!(memory.read(102, &mut bytes), Err(Unreadable { address: 106, length: 1 }));
        assert!(memory.read(u64::MAX, &mut bytes).is_err());
    }
}
