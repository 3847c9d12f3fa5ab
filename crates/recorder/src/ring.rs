//! What comes through the ring buffer, out of bytes.

use abi::record::{
    COPY_BYTES, COPY_PIECE, CodeRecord, CountKey, Deferred, FRAGMENT_BYTES, FRAGMENTS, Fragment, GivenAway, Header,
    KERNEL_WORDS, READS, Registers, WORDS, kind,
};
use rustc_hash::FxHashMap;
use std::mem::offset_of;

/// A stack that was not sent before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewStack {
    /// Whose, and the hash under which it is counted.
    pub(crate) key: CountKey,
    /// When (CLOCK_MONOTONIC, ns) it was seen first.
    pub(crate) time: u64,
    /// Its words, innermost first, cut ones marked.
    pub(crate) words: Vec<u64>,
}

/// A sample to be walked here.
#[derive(Clone, Debug)]
pub(crate) struct DeferredSample {
    /// Whose.
    pub(crate) key: CountKey,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub(crate) time: u64,
    /// User registers.
    pub(crate) registers: Registers,
    /// The task was in `execve`.
    pub(crate) execing: bool,
    /// The sampler has walked it: it is sent for those who check that.
    pub(crate) walked: bool,
    /// Pieces of the copy that are not valid, a bit each.
    pub(crate) missing: u32,
    /// The copy of the stack ends for want of room.
    pub(crate) cut: bool,
    /// Kernel words.
    pub(crate) kernel: Vec<u64>,
    /// The stack from the stack pointer (rounded down to 8) up.
    pub(crate) stack: Vec<u8>,
    /// The thread pointer, if it is known.
    pub(crate) thread_pointer: u64,
    /// Words elsewhere that lead through Python frames.
    pub(crate) reads: FxHashMap<u64, u64>,
}

impl DeferredSample {
    /// The word at `address` of the stack; `None` if it was not copied.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let begin = self.registers.sp & !7;
        let at = usize::try_from(address.checked_sub(begin)?).ok()?;
        // the first piece is what is left of its page; a word that is not aligned may reach into another piece
        let into_page = begin as usize % COPY_PIECE;
        let piece = |at: usize| (at + into_page) / COPY_PIECE;
        let is_missing = |piece: usize| piece >= 32 || self.missing >> piece & 1 != 0;
        if is_missing(piece(at)) || is_missing(piece(at.checked_add(7)?)) {
            return None;
        }
        word64(&self.stack, at)
    }
}

/// A code object of Python, as pieces of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewCode {
    /// Of a process with this id.
    pub(crate) pid: u32,
    /// Of this interpreter, as the sampler knows it.
    pub(crate) id: u32,
    /// Its address.
    pub(crate) code: u64,
    /// Its check.
    pub(crate) check: u32,
    /// Addresses and bytes.
    pub(crate) pieces: Vec<(u64, Vec<u8>)>,
}

/// A record.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// A new stack.
    Stack(NewStack),
    /// A deferred sample.
    Deferred(Box<DeferredSample>),
    /// Memory that was given away.
    GivenAway(GivenAway),
    /// A code object.
    Code(NewCode),
}

/// Decodes a record; `None` if the bytes are none.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
    let (head, body) = bytes.split_at_checked(size_of::<Header>())?;
    match word32(head, offset_of!(Header, kind))? {
        kind::STACK => stack(head, body).map(Record::Stack),
        kind::GIVEN_AWAY => given_away(head, body).map(Record::GivenAway),
        kind::CODE => code(head, bytes).map(Record::Code),
        kind::DEFERRED => deferred(head, bytes).map(|sample| Record::Deferred(Box::new(sample))),
        _ => None,
    }
}

fn stack(head: &[u8], body: &[u8]) -> Option<NewStack> {
    let length = word32(head, offset_of!(Header, length))? as usize;
    let total = word32(head, offset_of!(Header, total))?;
    let written: Vec<u64> = words(body, length.min(WORDS))?;
    let mut words = Vec::with_capacity(written.len() + 1);
    walk::unroll(&written, total, |word| words.push(word));
    Some(NewStack { key: key(head)?, time: word64(head, offset_of!(Header, time))?, words })
}

fn code(head: &[u8], bytes: &[u8]) -> Option<NewCode> {
    let count = word32(head, offset_of!(Header, kernel))? as usize;
    let mut pieces = Vec::new();
    let mut at = offset_of!(CodeRecord, bytes);
    for number in 0..count.min(FRAGMENTS) {
        let fragment = offset_of!(CodeRecord, fragments) + number * size_of::<Fragment>();
        let length = word32(bytes, fragment + offset_of!(Fragment, length))? as usize;
        let length = length.min(FRAGMENT_BYTES);
        let address = word64(bytes, fragment + offset_of!(Fragment, address))?;
        pieces.push((address, bytes.get(at..at + length)?.to_vec()));
        at += length.next_multiple_of(8);
    }
    Some(NewCode {
        pid: key(head)?.pid,
        id: word32(bytes, offset_of!(CodeRecord, id))?,
        code: word64(bytes, offset_of!(CodeRecord, code))?,
        check: word32(bytes, offset_of!(CodeRecord, check))?,
        pieces,
    })
}

fn deferred(head: &[u8], bytes: &[u8]) -> Option<DeferredSample> {
    let length = word32(head, offset_of!(Header, length))? as usize;
    let kernel = word32(head, offset_of!(Header, kernel))? as usize;
    let at = offset_of!(Deferred, stack);
    Some(DeferredSample {
        key: key(head)?,
        time: word64(head, offset_of!(Header, time))?,
        registers: registers(bytes.get(offset_of!(Deferred, registers)..)?)?,
        execing: word32(bytes, offset_of!(Deferred, execing))? != 0,
        walked: word32(bytes, offset_of!(Deferred, walked))? != 0,
        missing: word32(bytes, offset_of!(Deferred, missing))?,
        cut: word32(bytes, offset_of!(Deferred, cut))? != 0,
        kernel: words(bytes.get(offset_of!(Deferred, words)..)?, kernel.min(KERNEL_WORDS))?,
        stack: bytes.get(at..at + length.min(COPY_BYTES))?.to_vec(),
        thread_pointer: word64(bytes, offset_of!(Deferred, thread_pointer))?,
        reads: reads(head, bytes.get(at + (length.min(COPY_BYTES) & !7)..)?)?,
    })
}

/// What follows the stack.
fn reads(head: &[u8], bytes: &[u8]) -> Option<FxHashMap<u64, u64>> {
    let count = word32(head, offset_of!(Header, total))? as usize;
    let words = words(bytes, count.min(READS) * 2)?;
    Some(words.chunks_exact(2).map(|word| (word[0], word[1])).collect())
}

fn registers(bytes: &[u8]) -> Option<Registers> {
    let mut registers = Registers::ZERO;
    registers.pc = word64(bytes, offset_of!(Registers, pc))?;
    registers.sp = word64(bytes, offset_of!(Registers, sp))?;
    registers.fp = word64(bytes, offset_of!(Registers, fp))?;
    registers.lr = word64(bytes, offset_of!(Registers, lr))?;
    for (index, register) in registers.all.iter_mut().enumerate() {
        *register = word64(bytes, offset_of!(Registers, all) + index * 8)?;
    }
    Some(registers)
}

fn given_away(head: &[u8], body: &[u8]) -> Option<GivenAway> {
    let mut given = GivenAway { begin: word64(body, 0)?, end: word64(body, 8)?, ..GivenAway::default() };
    given.header.key = key(head)?;
    given.header.time = word64(head, offset_of!(Header, time))?;
    Some(given)
}

fn key(head: &[u8]) -> Option<CountKey> {
    let at = offset_of!(Header, key);
    let comm = at + offset_of!(CountKey, comm);
    Some(CountKey {
        pid: word32(head, at + offset_of!(CountKey, pid))?,
        tid: word32(head, at + offset_of!(CountKey, tid))?,
        comm: head.get(comm..comm + 16)?.try_into().ok()?,
        hash: word64(head, at + offset_of!(CountKey, hash))?,
    })
}

fn words(bytes: &[u8], count: usize) -> Option<Vec<u64>> {
    let bytes = bytes.get(..count * 8)?;
    Some(bytes.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?))).collect())
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000), kind in 0..6u8) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Some(Record::Deferred(sample)) = decode(&bytes) {
                prop_assert!(sample.stack.len() <= COPY_BYTES && sample.kernel.len() <= KERNEL_WORDS);
            }
        }
    }

    /// A record of these pieces, as the sampler writes it.
    fn code_record(pieces: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut record = vec![0; offset_of!(CodeRecord, bytes)];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(offset_of!(Header, kind), &kind::CODE.to_ne_bytes());
        put(offset_of!(Header, key) + offset_of!(CountKey, pid), &4711u32.to_ne_bytes());
        put(offset_of!(Header, kernel), &(pieces.len() as u32).to_ne_bytes());
        put(offset_of!(CodeRecord, code), &0x5000u64.to_ne_bytes());
        put(offset_of!(CodeRecord, id), &7u32.to_ne_bytes());
        put(offset_of!(CodeRecord, check), &9u32.to_ne_bytes());
        for (index, (address, bytes)) in pieces.iter().enumerate().take(FRAGMENTS) {
            let at = offset_of!(CodeRecord, fragments) + index * size_of::<Fragment>();
            put(at + offset_of!(Fragment, address), &address.to_ne_bytes());
            put(at + offset_of!(Fragment, length), &(bytes.len() as u32).to_ne_bytes());
        }
        for (_, bytes) in pieces {
            record.extend(bytes);
            record.resize(record.len().next_multiple_of(8), 0xee);
        }
        record
    }

    fn decoded_code(bytes: &[u8]) -> Option<NewCode> {
        match decode(bytes) {
            Some(Record::Code(code)) => Some(code),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn code_objects_come_out_as_they_went_in(
            pieces in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u8>(), 0..600)), 0..=FRAGMENTS),
        ) {
            let record = code_record(&pieces);
            let code = NewCode { pid: 4711, id: 7, code: 0x5000, check: 9, pieces: pieces.clone() };
            prop_assert_eq!(decoded_code(&record), Some(code));
            // cut off before its last piece is whole
            let padding = pieces.last().map_or(0, |(_, bytes)| bytes.len().next_multiple_of(8) - bytes.len());
            if pieces.iter().any(|(_, bytes)| !bytes.is_empty()) && pieces.last().is_some_and(|(_, bytes)| !bytes.is_empty()) {
                prop_assert_eq!(decoded_code(&record[..record.len() - padding - 1]), None);
            }
        }

        #[test]
        fn lengths_of_code_records_may_be_anything(
            lengths in prop::collection::vec(prop_oneof![any::<u32>(), 0..2000u32, Just(u32::MAX), Just(FRAGMENT_BYTES as u32)], FRAGMENTS),
            count in prop_oneof![any::<u32>(), 0..20u32],
            bytes in 0..3000usize,
        ) {
            let mut record = code_record(&[]);
            record[offset_of!(Header, kernel)..][..4].copy_from_slice(&count.to_ne_bytes());
            for (index, length) in lengths.iter().enumerate() {
                let at = offset_of!(CodeRecord, fragments) + index * size_of::<Fragment>() + offset_of!(Fragment, length);
                record[at..at + 4].copy_from_slice(&length.to_ne_bytes());
            }
            record.resize(record.len() + bytes, 1);
            if let Some(code) = decoded_code(&record) {
                prop_assert!(code.pieces.len() <= FRAGMENTS);
                prop_assert!(code.pieces.iter().map(|(_, piece)| piece.len()).sum::<usize>() <= bytes);
            }
            // without all of its head it is none
            for length in 0..offset_of!(CodeRecord, bytes) {
                let cut = decoded_code(&record[..length]);
                prop_assert!(cut.is_none_or(|code| code.pieces.iter().all(|(_, piece)| piece.is_empty())));
            }
        }
    }

    #[test]
    fn words_of_a_copy_with_holes() {
        let mut registers = Registers::ZERO;
        registers.sp = 0x7fff_0000_0ff0;
        let stack: Vec<u8> = (0..1024u64).flat_map(|index| index.to_ne_bytes()).collect();
        let key = CountKey::default();
        let base = registers.sp;
        // pieces: 16 bytes, a page that is missing, the rest
        let sample = DeferredSample {
            key,
            time: 0,
            registers,
            execing: false,
            walked: false,
            missing: 0b10,
            cut: false,
            kernel: Vec::new(),
            stack,
            thread_pointer: 0,
            reads: FxHashMap::default(),
        };
        assert_eq!(sample.word(base), Some(0));
        assert_eq!(sample.word(base + 8), Some(1));
        assert_eq!(sample.word(base + 12), None, "reaches into the hole");
        assert_eq!(sample.word(base + 16), None);
        assert_eq!(sample.word(base + 16 + 4096 - 8), None);
        assert_eq!(sample.word(base + 16 + 4096), Some(2 + 512));
        assert_eq!(sample.word(base - 8), None);
        assert_eq!(sample.word(base + 8192), None);
        assert_eq!(sample.word(u64::MAX), None);
    }

    #[test]
    fn a_stack_comes_out_as_it_went_in() {
        let header = Header {
            kind: kind::STACK,
            length: 3,
            key: CountKey { pid: 1, tid: 2, comm: *b"comm\0\0\0\0\0\0\0\0\0\0\0\0", hash: 77 },
            time: 5,
            total: 3,
            kernel: 0,
        };
        // SAFETY: plain integers without padding, as the size assertions of `abi` imply.
        let head: [u8; size_of::<Header>()] = unsafe { std::mem::transmute(header) };
        let mut bytes = head.to_vec();
        [10u64, 11, 12].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        let Some(Record::Stack(stack)) = decode(&bytes) else { panic!("a stack") };
        assert_eq!(stack, NewStack { key: header.key, time: header.time, words: vec![10, 11, 12] });
        assert!(decode(&bytes[..bytes.len() - 1]).is_none(), "cut off");
    }
}
