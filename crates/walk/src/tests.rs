//! The walk over made-up memory, whose truth is written beside it.
extern crate std;

use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec::Vec;

use abi::process::{Mapping, code};
use abi::python::Entry;
use abi::stop::Stop;
use abi::table::{Rule, cfa, fp, ra};
use abi::word::{self, Word, flag};

use crate::{Architecture, Target, Walk, X86_64, turn, unroll};

/// A walk whose bytes are all zero.
pub(crate) fn blank() -> Box<Walk> {
    Box::new(Walk::ZERO)
}

#[derive(Default)]
struct Made {
    memory: BTreeMap<u64, u64>,
    mappings: Vec<Mapping>,
    rules: BTreeMap<u64, Rule>,
    /// What code without rules says.
    exits: BTreeMap<u64, Rule>,
    /// Addresses that no call ends at.
    no_calls: Vec<u64>,
}

impl Target for Made {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        self.memory.get(&address).copied()
    }
    fn mapping(&mut self, pc: u64) -> Option<Mapping> {
        self.mappings.iter().find(|mapping| (mapping.begin..mapping.end).contains(&pc)).copied()
    }
    fn rule(&mut self, _: &Mapping, offset: u64) -> Rule {
        self.rules.range(..=offset).next_back().map_or(Rule::NONE, |(_, rule)| *rule)
    }
    fn exit(&mut self, _: &Mapping, pc: u64, _: bool) -> Option<Rule> {
        Some(self.exits.get(&pc).copied().unwrap_or(Rule::NONE))
    }
    fn read_code(&mut self, address: u64) -> Option<u64> {
        let call = 0xe8 << 24;
        Some(if self.no_calls.contains(&(address + 8)) { 0 } else { call })
    }
}

const TEXT: u64 = 0x40_0000;

fn made(rules: &[(u64, Rule)]) -> Made {
    let mapping = Mapping { begin: TEXT, end: TEXT + 0x10000, object: 7, code: code::TABLE, ..Mapping::default() };
    let jit = Mapping { begin: 0x70_0000, end: 0x71_0000, code: code::ANONYMOUS, ..Mapping::default() };
    Made { mappings: [mapping, jit].into(), rules: rules.iter().copied().collect(), ..Made::default() }
}

fn sp(offset: i32) -> Rule {
    Rule { cfa: cfa::SP, cfa_offset: offset, ..Rule::NONE }
}

fn walk_from(target: &mut Made, pc: u64, sp: u64, fp: u64) -> Vec<Word> {
    let mut walk = blank();
    (walk.registers.pc, walk.registers.sp, walk.registers.fp) = (pc, sp, fp);
    walk.registers.all[10] = 0x9000;
    walk.begin(0, 0);
    while turn::<X86_64, Made>(target, &Entry::NONE, &mut walk) {}
    let mut words = Vec::new();
    unroll(&walk.stack.words, walk.stack.header.total, |word| words.push(Word::decode(word)));
    words
}

fn frame(offset: u64, flags: u8) -> Word {
    Word::decode(word::object(flags, 7, offset))
}

fn ended(stop: Stop) -> Word {
    Word::decode(word::end(stop as u8, 7, 0))
}

#[test]
fn a_chain_of_rules_to_the_root() {
    let saves_fp = Rule { fp: fp::AT_CFA, fp_offset: -16, ..sp(32) };
    let by_fp = Rule { cfa: cfa::FP, cfa_offset: 16, ..Rule::NONE };
    let mut target = made(&[(0x100, sp(8)), (0x200, saves_fp), (0x300, by_fp), (0x400, Rule::END)]);
    target.memory.extend([
        (0x8000, TEXT + 0x210), // leaf returns
        (0x8018, 0x9000),       // saved frame pointer of the third
        (0x8020, TEXT + 0x310),
        (0x9008, TEXT + 0x400), // the call is the last instruction before _start
    ]);
    let words = walk_from(&mut target, TEXT + 0x110, 0x8000, 0x1234);
    // the last return address lies at the first byte of `_start`'s rule; the call lies before it
    let chain = [frame(0x110, flag::EXACT), frame(0x210, 0), frame(0x310, 0), frame(0x400, 0)];
    assert_eq!(words[..4], chain);
    assert_eq!(words[4], ended(Stop::NotAscending), "pc-1 belongs to the function before");
}

#[test]
fn each_form_of_cfa() {
    let deref = Rule { cfa: cfa::DEREF_FP, cfa_offset: -8, extra: 0, fp: fp::AT_FP, fp_offset: 0, ..Rule::NONE };
    let deref_sp = Rule { cfa: cfa::DEREF_SP, cfa_offset: 0, extra: 16, ..Rule::NONE };
    let register = Rule { cfa: cfa::REGISTER, register: 10, cfa_offset: 8, ..Rule::NONE };
    let plt = Rule { cfa: cfa::PLT, cfa_offset: 11, ..Rule::NONE };
    for (name, rule, pc, memory) in [
        ("realigned", deref, 0x100, &[(0x8fa8, 0x9008), (0x9000, 0), (0x8fb0, 0x77)][..]),
        ("switched", deref_sp, 0x100, &[(0x8000, 0x9000), (0x9008, 0)]),
        ("register", register, 0x100, &[(0x9000, 0)]),
        ("plt before the push", plt, 0x10a, &[(0x8000, 0)]),
        ("plt after the push", plt, 0x10b, &[(0x8008, 0)]),
    ] {
        let mut target = made(&[(0x100, rule)]);
        target.memory.extend(memory.iter().copied());
        let words = walk_from(&mut target, TEXT + pc, 0x8000, 0x8fb0);
        // the 0 that was put at the place of the return address was found
        assert_eq!(words, [frame(pc, flag::EXACT), ended(Stop::BadReturnAddress)], "{name}");
    }
}

#[test]
fn a_register_is_lost_behind_a_call() {
    let register = Rule { cfa: cfa::REGISTER, register: 10, cfa_offset: 8, ..Rule::NONE };
    let mut target = made(&[(0x100, sp(8)), (0x200, register)]);
    target.memory.insert(0x8000, TEXT + 0x210);
    let words = walk_from(&mut target, TEXT + 0x110, 0x8000, 0);
    assert_eq!(words.last(), Some(&ended(Stop::LostRegister)));
}

/// `_dl_runtime_resolve` of glibc keeps its CFA in rbx, which its callees save.
#[test]
fn a_cfa_in_rbx_is_found_where_a_callee_saved_it() {
    let saves_bx = Rule { bx_offset: -16, ..sp(24) };
    let resolve = Rule { cfa: cfa::REGISTER, register: 3, cfa_offset: 24, bx_offset: -24, ..Rule::NONE };
    let mut target = made(&[(0x100, saves_bx), (0x200, sp(16)), (0x300, resolve), (0x400, Rule::END)]);
    target.memory.extend([
        (0x8008, 0x9000), // rbx of the resolver, saved by the leaf
        (0x8010, TEXT + 0x210),
        (0x8020, TEXT + 0x310),
        (0x9010, TEXT + 0x410),
    ]);
    let words = walk_from(&mut target, TEXT + 0x110, 0x8000, 0);
    let chain = [frame(0x110, flag::EXACT), frame(0x210, 0), frame(0x310, 0), frame(0x410, 0)];
    assert_eq!(words[..4], chain);
    assert_eq!(words[4], ended(Stop::Root));
    let lost = Rule { bx_offset: abi::table::bx::LOST, ..sp(24) };
    target.rules.insert(0x100, lost);
    assert_eq!(walk_from(&mut target, TEXT + 0x110, 0x8000, 0).last(), Some(&ended(Stop::LostRegister)));
}

/// glibc's `vfork` has the return address in rdi, and its CFA at the stack pointer.
#[test]
fn a_return_address_in_a_register() {
    let vfork = Rule { ra: ra::REGISTER, extra: 10, ..sp(0) };
    let mut target = made(&[(0x100, vfork), (0x9000, Rule::END)]);
    target.mappings[0].begin = 0;
    target.mappings[0].end = 0x10000;
    let words = walk_from(&mut target, 0x110, 0x8000, 0);
    assert_eq!(
        words,
        [frame(0x110, flag::EXACT), frame(0x9000, 0), ended(Stop::NotAscending)],
        "pc-1 is in vfork again"
    );
    target.rules.insert(0x8fff, Rule::END);
    let words = walk_from(&mut target, 0x110, 0x8000, 0);
    assert_eq!(words, [frame(0x110, flag::EXACT), frame(0x9000, 0), ended(Stop::Root)]);
}

#[test]
fn in_exec_only_whole_stacks_are_believed() {
    let mut walk = blank();
    walk.stack.words[0] = 0xffff_ffff_8100_0000;
    walk.begin(1, 0);
    walk.push(word::object(flag::EXACT, 7, 0x100));
    walk.end(Stop::UnreadableStack);
    walk.settle_exec();
    assert_eq!((walk.stop_code(), walk.stack.header.total), (Stop::Execing as u8, 2));
    walk.begin(1, 0);
    (0..2).for_each(|_| walk.push(word::object(0, 7, 0x100)));
    walk.end(Stop::Root);
    walk.settle_exec();
    assert_eq!((walk.stop_code(), walk.stack.header.total), (Stop::Root as u8, 4));
}

#[test]
fn a_signal_frame_gives_all_registers_back() {
    let register = Rule { cfa: cfa::REGISTER, register: 10, cfa_offset: 8, ..Rule::NONE };
    let mut target = made(&[(0x100, sp(8)), (0x200, Rule::SIGNAL), (0x300, register), (0x400, Rule::END)]);
    target.memory.extend([
        (0x8000, TEXT + 0x201), // handler returns to the trampoline
        (0x8008 + X86_64::SIGNAL_PC, TEXT + 0x300),
        (0x8008 + X86_64::SIGNAL_SP, 0x6000), // the handler ran on a stack of its own
        (0x8008 + X86_64::SIGNAL_FP, 0x55),
        (0x8008 + X86_64::signal_register(10), 0x6010),
        (0x6010, TEXT + 0x410),
    ]);
    let words = walk_from(&mut target, TEXT + 0x110, 0x8000, 0);
    let trampoline = frame(0x201, flag::EXACT);
    let chain = [frame(0x110, flag::EXACT), trampoline, frame(0x300, flag::EXACT), frame(0x410, 0)];
    assert_eq!(words[..4], chain);
    assert_eq!(words[4], ended(Stop::Root));
}

#[test]
fn frame_pointers_through_jit_code_and_back() {
    let mut target = made(&[(0x100, sp(8)), (0x200, sp(16)), (0x400, Rule::END)]);
    target.memory.extend([
        (0x8000, 0x70_0010), // native leaf called by JIT code
        (0x8100, 0x8200),    // frame record of the JIT frame
        (0x8108, TEXT + 0x210),
        (0x8118, TEXT + 0x410),
    ]);
    let words = walk_from(&mut target, TEXT + 0x110, 0x8000, 0x8100);
    let jit = Word::decode(word::raw(0, 0x70_0010));
    let chain = [frame(0x110, flag::EXACT), jit, frame(0x210, flag::BY_FRAME_POINTER), frame(0x410, 0)];
    assert_eq!(words[..4], chain);
    assert_eq!(words[4], ended(Stop::Root));
}

#[test]
fn a_chain_of_frame_records_ends_in_zero() {
    let mut target = made(&[]);
    target.memory.extend([(0x8100, 0), (0x8108, TEXT + 0x210)]);
    let words = walk_from(&mut target, TEXT + 0x110, 0x8000, 0x8100);
    assert_eq!(words, [frame(0x110, flag::EXACT), frame(0x210, flag::BY_FRAME_POINTER), ended(Stop::Root)]);
    // without a record before it, a frame pointer of 0 proves nothing
    assert_eq!(walk_from(&mut target, TEXT + 0x110, 0x8000, 0), [frame(0x110, flag::EXACT), ended(Stop::NoUnwindInfo)]);
}

/// What code says of its caller is a claim; the call before the return address is the proof.
#[test]
fn a_claim_of_code_is_believed_behind_a_call_only() {
    const JIT: u64 = 0x70_0010;
    let claim = Rule { ra: ra::CHECKED, ..sp(16) };
    let mut target = made(&[(0x400, Rule::END)]);
    target.exits.insert(JIT, claim);
    target.memory.insert(0x8008, TEXT + 0x410);
    let jit = Word::decode(word::raw(flag::EXACT, JIT));
    assert_eq!(walk_from(&mut target, JIT, 0x8000, 0), [jit, frame(0x410, 0), ended(Stop::Root)]);
    let end = |stop: Stop| Word::decode(word::end(stop as u8, 0, 0));
    target.no_calls.push(TEXT + 0x410);
    assert_eq!(walk_from(&mut target, JIT, 0x8000, 0), [jit, end(Stop::NoCall)]);
    // nor are return addresses that cannot be one
    for (address, stop) in [(0, Stop::NoCall), (1 << 60, Stop::NoCall), (0x1234, Stop::NoMapping)] {
        target.memory.insert(0x8008, address);
        assert_eq!(walk_from(&mut target, JIT, 0x8000, 0), [jit, end(stop)], "{address:#x}");
    }
}

#[test]
fn a_frame_pointer_is_believed_before_a_call_only() {
    let mut target = made(&[(0x400, Rule::END)]);
    target.memory.extend([(0x8100, 0), (0x8108, TEXT + 0x410)]);
    let (exact, by_fp) = (frame(0x110, flag::EXACT), frame(0x410, flag::BY_FRAME_POINTER));
    assert_eq!(walk_from(&mut target, TEXT + 0x110, 0x8000, 0x8100), [exact, by_fp, ended(Stop::Root)]);
    target.no_calls.push(TEXT + 0x410);
    assert_eq!(walk_from(&mut target, TEXT + 0x110, 0x8000, 0x8100), [exact, ended(Stop::NoCall)]);
}

/// Page 0 can be mapped by those who may.
#[test]
fn a_frame_record_does_not_reach_over_the_end_of_memory() {
    let mut target = made(&[(0x400, Rule::END)]);
    target.memory.extend([(u64::MAX - 7, 0x8200), (0, TEXT + 0x410)]);
    let words = walk_from(&mut target, TEXT + 0x110, 0x8000, u64::MAX - 7);
    assert_eq!(words, [frame(0x110, flag::EXACT), ended(Stop::NoUnwindInfo)]);
}

/// Code that keeps the frame pointer does not say where, if it was read from behind the push; the frame record shows it.
#[test]
fn a_lost_frame_pointer_is_found_in_its_record() {
    const JIT: u64 = 0x70_0010;
    let claim = Rule { ra: ra::CHECKED, fp: fp::LOST, ..sp(32) };
    let by_fp = Rule { cfa: cfa::FP, cfa_offset: 16, ..Rule::NONE };
    let mut target = made(&[(0x300, by_fp), (0x400, Rule::END)]);
    target.exits.insert(JIT, claim);
    target.memory.extend([(0x8010, 0x9000), (0x8018, TEXT + 0x310), (0x9008, TEXT + 0x410)]);
    let jit = Word::decode(word::raw(flag::EXACT, JIT));
    let whole = [jit, frame(0x310, 0), frame(0x410, 0), ended(Stop::Root)];
    assert_eq!(walk_from(&mut target, JIT, 0x8000, 0x8010), whole);
    // a frame pointer that points elsewhere is no proof
    assert_eq!(walk_from(&mut target, JIT, 0x8000, 0x8020), [jit, frame(0x310, 0), ended(Stop::LostRegister)]);
}

#[test]
fn damage_is_named() {
    let mut target = made(&[(0x100, sp(8)), (0x200, sp(-8)), (0x300, Rule::unsupported(1))]);
    target.memory.extend([(0x8000, 0xffff_ffff_8100_0000), (0x8010, TEXT + 0x210), (0x8020, TEXT + 0x310)]);
    target.memory.insert(0x8030, 0x1234);
    let mut stop_at = |pc, sp| *walk_from(&mut target, TEXT + pc, sp, 0).last().unwrap();
    assert_eq!(stop_at(0x110, 0x8000), ended(Stop::BadReturnAddress));
    assert_eq!(stop_at(0x110, 0x8008), ended(Stop::UnreadableStack));
    assert_eq!(stop_at(0x110, 0x8010), ended(Stop::NotAscending));
    let unsupported = Word::decode(word::end(Stop::UnsupportedRule as u8, 7, 1));
    assert_eq!(stop_at(0x110, 0x8020), unsupported);
    assert_eq!(stop_at(0x110, 0x8030), Word::decode(word::end(Stop::NoMapping as u8, 0, 0)));
}
