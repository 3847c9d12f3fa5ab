//! The stack walkers over a process in which everything is chosen: registers, memory, mappings, rules.
#![no_main]

use abi::process::{Mapping, code};
use abi::python::{CHECKS, CodeFacts, Entry, FRAMES, Fault, NONE, Python, Slot, flags, run};
use abi::record::{KERNEL_WORDS, TURNS, WORDS};
use abi::stop::Stop;
use abi::table::{Rule, cfa, ra};
use abi::word::Word;
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use walk::{Aarch64, Architecture, EvalLoop, Target, Walk, X86_64, give_up, mix, turn, unroll};

/// Below this address no process has memory (`vm.mmap_min_addr`), and the kernel's half begins at the other.
const MEMORY: std::ops::Range<u64> = 0x1000..1 << 63;

#[derive(Arbitrary, Debug)]
struct Input {
    aarch64: bool,
    execing: bool,
    code_mask: u64,
    kernel: Vec<u64>,
    registers: [Cell; 8],
    mappings: [MadeMapping; 4],
    rules: [MadeRule; 8],
    memory: Vec<Cell>,
    python: Option<MadePython>,
}

/// An interpreter: where its eval loops are, by the lower bits of a place in a file, and how its frames are chained.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct MadePython {
    eval_loops: u16,
    parts: u16,
    keeps_native: bool,
    version: u8,
    thread_pointer: u32,
}

impl MadePython {
    /// Offsets are small, so that a short input makes a chain.
    fn entry(self, code_type: u64) -> Entry {
        let slot = Slot { loads: 1 + u32::from(self.version >> 6), ..Slot::default() };
        let old = Python {
            code_type,
            slot,
            thread_id: 8,
            native_thread_id: NONE,
            current: 16,
            cframe_current: NONE,
            base_frame: NONE,
            code: 0,
            back: 8,
            lasti: 16,
            owner: NONE,
            object_type: 8,
            run: run::EVERY,
            flags: flags::LASTI_IS_INDEX,
            ..Python::default()
        };
        let new = Python { owner: 26, run: run::SHIM, flags: 0, ..old };
        let python = match self.version % 5 {
            0 => old,
            1 => Python { cframe_current: 0, run: run::ENTRY, ..new },
            2 => Python { cframe_current: 0, ..new },
            3 => new,
            _ => Python { base_frame: 24, tags: 3, ..new },
        };
        let mut checked = [NONE; CHECKS];
        checked[0] = 16;
        let code = CodeFacts { masks: [u64::MAX; CHECKS], checked, ..CodeFacts::NONE };
        Entry { python, code, id: 1, keeps_native: self.keeps_native.into(), ..Entry::NONE }
    }
}

/// A word of memory, or a register.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Cell {
    Unreadable,
    Any(u64),
    /// Near the place where it lies, as frame pointers are.
    Near(i16),
    /// Into code, as return addresses are.
    Code(u8, u16),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct MadeMapping {
    begin: u32,
    size: u16,
    file_offset: u32,
    object: u8,
    code: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct MadeRule {
    cfa: u8,
    register: u8,
    fp: u8,
    ra: u8,
    cfa_offset: Offset,
    fp_offset: Offset,
    extra: Offset,
    bx_offset: Offset,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Offset {
    Words(i8),
    Any(i32),
}

impl Offset {
    fn bytes(self) -> i32 {
        match self {
            Offset::Words(words) => i32::from(words) * 8,
            Offset::Any(bytes) => bytes,
        }
    }
}

impl MadeRule {
    fn rule(self) -> Rule {
        Rule {
            cfa: self.cfa % 13,
            register: self.register,
            fp: self.fp % 6,
            ra: self.ra % 5,
            cfa_offset: self.cfa_offset.bytes(),
            fp_offset: self.fp_offset.bytes(),
            extra: self.extra.bytes(),
            bx_offset: self.bx_offset.bytes(),
        }
    }
}

/// The process.
struct Made<'a> {
    input: &'a Input,
    mappings: [Mapping; 4],
    /// The rule of the frame that was walked last.
    last: Rule,
}

impl Made<'_> {
    fn new(input: &Input) -> Made<'_> {
        let mappings = input.mappings.map(|made| Mapping {
            begin: u64::from(made.begin),
            end: u64::from(made.begin) + u64::from(made.size),
            file_offset: u64::from(made.file_offset) << 12,
            object: made.object.into(),
            code: u32::from(made.code % 5),
            ..Mapping::default()
        });
        Made { input, mappings, last: Rule::NONE }
    }

    fn value(&self, cell: Cell, address: u64) -> Option<u64> {
        match cell {
            Cell::Unreadable => None,
            Cell::Any(word) => Some(word),
            Cell::Near(words) => Some(address.wrapping_add_signed(i64::from(words) * 8)),
            Cell::Code(mapping, into) => {
                let mapping = &self.mappings[usize::from(mapping) % self.mappings.len()];
                Some(mapping.begin + u64::from(into))
            }
        }
    }
}

impl Target for Made<'_> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let count = self.input.memory.len();
        if count == 0 || !MEMORY.contains(&address) {
            return None;
        }
        // the same few words over and over: a short input makes a deep stack
        self.value(self.input.memory[(address / 8) as usize % count], address)
    }

    fn mapping(&mut self, pc: u64) -> Option<Mapping> {
        self.mappings.iter().find(|mapping| (mapping.begin..mapping.end).contains(&pc)).copied()
    }

    fn rule(&mut self, mapping: &Mapping, offset: u64) -> Rule {
        assert_eq!(mapping.code, code::TABLE);
        self.last = self.input.rules[(offset / 16) as usize % self.input.rules.len()].rule();
        self.last
    }

    fn exit(&mut self, _: &Mapping, pc: u64, _: bool) -> Option<Rule> {
        // every third place was not read yet
        let rule =
            (!pc.is_multiple_of(3)).then(|| self.input.rules[(pc / 16) as usize % self.input.rules.len()].rule());
        self.last = rule.unwrap_or(Rule::NONE);
        rule
    }

    fn read_code(&mut self, address: u64) -> Option<u64> {
        self.read_u64(address)
    }

    fn eval_loop(&mut self, _: &Mapping, offset: u64) -> EvalLoop {
        let Some(python) = self.input.python else { return EvalLoop::No };
        let is_in = |places: u16| places >> (offset / 16 % 16) & 1 != 0;
        match (is_in(python.eval_loops), is_in(python.parts)) {
            (true, true) => EvalLoop::Part,
            (true, false) => EvalLoop::Main,
            _ => EvalLoop::No,
        }
    }

    fn thread_pointer(&mut self) -> u64 {
        self.input.python.map_or(0, |python| u64::from(python.thread_pointer) & !7)
    }
}

thread_local! {
    /// One walk after the other is in the same memory, as in the kernel.
    static WALK: RefCell<Box<Walk>> = RefCell::new(Box::new(Walk::ZERO));
}

fuzz_target!(|input: Input| {
    let words = WALK.with_borrow_mut(|walk| {
        [(); 2].map(|()| if input.aarch64 { walked::<Aarch64>(&input, walk) } else { walked::<X86_64>(&input, walk) })
    });
    assert_eq!(words[0], words[1], "what is left of the walk before matters");
});

fn walked<A: Architecture>(input: &Input, walk: &mut Walk) -> Vec<u64> {
    let mut target = Made::new(input);
    let kernel = input.kernel.len().min(KERNEL_WORDS);
    walk.stack.words[..kernel].copy_from_slice(&input.kernel[..kernel]);
    let register = |index: usize| target.value(input.registers[index], 0x10_0000).unwrap_or(0);
    let registers = &mut walk.registers;
    (registers.pc, registers.sp, registers.fp, registers.lr) = (register(0), register(1), register(2), register(3));
    registers.all = std::array::from_fn(|number| register(4 + number % 4));
    walk.begin(kernel as u32, input.code_mask);
    let code_type = input.memory.first().and_then(|cell| target.value(*cell, 0x1000)).unwrap_or(0);
    let entry = input.python.map_or(Entry::NONE, |python| python.entry(code_type));
    let mut turns = 0;
    loop {
        let (sp, total) = (walk.registers.sp, walk.stack.header.total);
        target.last = Rule::NONE;
        let goes_on = turn::<A, Made<'_>>(&mut target, &entry, walk);
        turns += 1;
        if input.python.is_some() {
            match turns {
                _ if !goes_on => break,
                TURNS => {
                    give_up(&entry, walk);
                    break;
                }
                _ => continue,
            }
        }
        let words = walk.stack.header.total - total;
        if !goes_on {
            // an address that a walk led to is no frame if there is no code
            let no_frame = turns > 1 && walk.stop_code() == Stop::NoMapping as u8;
            assert!(words == 2 || words == 1 && no_frame, "turn {turns}: {words} words");
            break;
        }
        assert_eq!(words, 1, "turn {turns}");
        ascends::<A>(&target.last, sp, walk.registers.sp, turns);
        if turns == TURNS {
            walk.end(Stop::TooDeep);
            break;
        }
    }
    if input.execing {
        walk.settle_exec();
    }
    check_words(input, kernel, walk)
}

/// Only a signal handler's frame and Go's own stack lead to an outer frame that lies lower.
fn ascends<A: Architecture>(rule: &Rule, from: u64, to: u64, turns: u32) {
    let anywhere = matches!(rule.cfa, cfa::SIGNAL | cfa::OTHER_STACK);
    // a function that has not pushed anything, where calls do not push either
    let leaf = !A::CALL_PUSHES || rule.ra == ra::REGISTER;
    assert!(anywhere || to > from || leaf && to == from, "turn {turns}: {from:#x} to {to:#x} by {rule:?}");
}

fn check_words(input: &Input, kernel: usize, walk: &Walk) -> Vec<u64> {
    let total = walk.stack.header.total as usize;
    let mut words = Vec::new();
    unroll(&walk.stack.words, walk.stack.header.total, |word| words.push(word));
    assert_eq!(words.len(), if total > WORDS { WORDS + 1 } else { total });
    assert_eq!(words[..kernel], input.kernel[..kernel]);
    let user = &words[kernel..];
    let ends = user.iter().filter(|word| matches!(Word::decode(**word), Word::End { .. })).count();
    let Some(Word::End { stop, .. }) = user.last().map(|word| Word::decode(*word)) else {
        panic!("the last word is {:x?}", user.last());
    };
    assert!(ends == 1 && Stop::from_code(stop).is_some() && stop == walk.stop_code());
    let cuts =
        user.iter().filter_map(|word| if let Word::Cut(count) = Word::decode(*word) { Some(count) } else { None });
    assert_eq!(cuts.collect::<Vec<_>>(), if total > WORDS { vec![(total - WORDS) as u64] } else { vec![] });
    assert!(!user.iter().any(|word| matches!(Word::decode(*word), Word::Unknown(_) | Word::Kernel(_))));
    check_python(input, user);
    if total <= WORDS {
        assert_eq!(words.iter().fold(0, |hash, word| mix(hash, *word)), walk.stack.header.key.hash);
    }
    words
}

/// Faults are said once, and what is there of a frame is whole or was cut apart.
fn check_python(input: &Input, user: &[u64]) {
    let count = |is: fn(Word) -> bool| user.iter().filter(|word| is(Word::decode(**word))).count();
    let frames = count(|word| matches!(word, Word::Python(_)));
    let doubts = count(|word| word == Word::PythonFault(Fault::Unproven as u8));
    let faults = count(|word| matches!(word, Word::PythonFault(_))) - doubts;
    assert!(faults <= 1 && doubts <= 1 && frames <= FRAMES as usize);
    assert!(input.python.is_some() || frames + faults + doubts == 0);
    for pair in user.windows(2) {
        let [first, second] = [Word::decode(pair[0]), Word::decode(pair[1])];
        let is_whole = matches!(first, Word::Python(_)) == matches!(second, Word::PythonAt { .. });
        assert!(is_whole || matches!(first, Word::Cut(_)) || matches!(second, Word::Cut(_)), "{first:?} {second:?}");
    }
}
