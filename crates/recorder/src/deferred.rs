//! Walking deferred samples: the code that the kernel runs, over a copy of the stack.

use abi::process::Mapping;
use abi::python::Entry;
use abi::record::WORDS;
use abi::stop::Stop;
use abi::table::Rule;
use abi::word::{self, Word};
use objects::exits::Code;
use python::eval_loop::{EvalLoop, PieceKind};
use walk::{Target, Walk, give_up, turn, unroll};

use crate::exits::{ExitMap, Exits, Process};
use crate::known_objects::KnownObjects;
use crate::ring::DeferredSample;
use crate::tables::Tables;

#[cfg(target_arch = "aarch64")]
type Native = walk::Aarch64;
#[cfg(target_arch = "x86_64")]
type Native = walk::X86_64;

/// What a deferred sample comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Walked {
    /// The stack.
    Stack(Vec<u64>),
    /// The table of this object is needed first.
    NeedsTable(u32),
}

/// Memory for one walk after the other.
pub(crate) struct Walker {
    walk: Box<Walk>,
    pub(crate) exits: Exits,
}

impl Walker {
    pub(crate) fn new(exits: ExitMap) -> Walker {
        Walker { walk: Box::new(Walk::ZERO), exits: Exits::new(exits) }
    }

    /// Walks a sample in a process with these mappings.
    pub(crate) fn walk(
        &mut self,
        sample: &DeferredSample,
        mappings: &[Mapping],
        objects: &KnownObjects,
        tables: &Tables,
        python: Option<(&Entry, &EvalLoop)>,
    ) -> Walked {
        self.begin(sample);
        let process = Process { pid: sample.key.pid, mappings, objects };
        let entry = python.map_or(&Entry::NONE, |(entry, _)| entry);
        let mut copy = Copy { sample, process, tables, python, exits: &mut self.exits, ended: false };
        let mut turns = abi::record::TURNS;
        while turn::<Native, Copy>(&mut copy, entry, &mut self.walk) {
            turns -= 1;
            if turns == 0 {
                give_up(entry, &mut self.walk);
                break;
            }
        }
        let ended = copy.ended;
        if sample.execing && self.walk.stop_code() != Stop::TableNotReady as u8 {
            self.walk.settle_exec();
        }
        self.finish(ended)
    }

    /// A sample that cannot be walked: the reason, and its innermost frame if there is still a user stack.
    pub(crate) fn unwalked(&mut self, sample: &DeferredSample, stop: Stop) -> Vec<u64> {
        self.begin(sample);
        if !stop.is_whole() {
            self.walk.push(word::raw(word::flag::EXACT, sample.registers.pc));
        }
        self.walk.end(stop);
        self.words()
    }

    fn begin(&mut self, sample: &DeferredSample) {
        let kernel = sample.kernel.len().min(WORDS);
        self.walk.stack.words[..kernel].copy_from_slice(&sample.kernel[..kernel]);
        self.walk.registers = sample.registers;
        self.walk.begin(kernel as u32, 0);
    }

    fn finish(&mut self, copy_ended: bool) -> Walked {
        let mut words = self.words();
        let Some(last) = words.last_mut() else { return Walked::Stack(words) };
        let Word::End { stop, detail, .. } = Word::decode(*last) else { return Walked::Stack(words) };
        if stop == Stop::TableNotReady as u8 {
            return Walked::NeedsTable(detail);
        }
        let unread = stop == Stop::UnreadableStack as u8 || stop == Stop::NoUnwindInfo as u8;
        if copy_ended && unread {
            *last = word::end(Stop::CopyEnds as u8, 0, 0);
        }
        Walked::Stack(words)
    }

    fn words(&self) -> Vec<u64> {
        let mut words = Vec::with_capacity(self.walk.stack.header.total as usize);
        unroll(&self.walk.stack.words, self.walk.stack.header.total, |word| words.push(word));
        words
    }
}

/// The process as a deferred sample shows it.
struct Copy<'a> {
    sample: &'a DeferredSample,
    process: Process<'a>,
    tables: &'a Tables,
    python: Option<(&'a Entry, &'a EvalLoop)>,
    exits: &'a mut Exits,
    /// Something behind the end of a copy that found no more room was asked for.
    ended: bool,
}

impl Target for Copy<'_> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let word = self.sample.word(address).or_else(|| self.sample.reads.get(&address).copied());
        if word.is_none() && self.sample.cut {
            self.ended = true;
        }
        word
    }

    fn mapping(&mut self, pc: u64) -> Option<Mapping> {
        self.process.mapping(pc).copied()
    }

    fn rule(&mut self, mapping: &Mapping, offset: u64) -> Rule {
        self.tables.rule(mapping, offset)
    }

    fn exit(&mut self, mapping: &Mapping, pc: u64, interrupted: bool) -> Option<Rule> {
        Some(self.exits.rule(self.process, mapping, pc, interrupted))
    }

    fn eval_loop(&mut self, mapping: &Mapping, offset: u64) -> walk::EvalLoop {
        // what was deferred before the interpreter was known has none of its frames
        let known = self.python.filter(|(entry, _)| mapping.object == entry.object && !self.sample.reads.is_empty());
        match known.and_then(|(_, eval_loop)| eval_loop.at(offset)) {
            None => walk::EvalLoop::No,
            Some(PieceKind::Part) => walk::EvalLoop::Part,
            Some(PieceKind::Main) => walk::EvalLoop::Main,
        }
    }

    fn moment(&mut self, offset: u64) -> u32 {
        self.python.map_or(0, |(entry, eval_loop)| eval_loop.moment_at(&entry.python, offset))
    }

    fn thread_pointer(&mut self) -> u64 {
        self.sample.thread_pointer
    }

    fn read_code(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.process.read(address, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
    }
}
