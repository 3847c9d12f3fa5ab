//! Cases assembled by hand.

use abi::table::{Rule, bx, cfa, fp, ra};
use proptest::prelude::*;

use super::{Code, Exit, Unclear, exit, exit_after_call};

const BASE: u64 = 0x40_0000;
const RET: u8 = 0xc3;

/// Code at one address; counts how often it is asked.
struct At {
    base: u64,
    bytes: Vec<u8>,
    asked: usize,
}

impl Code for At {
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        self.asked += 1;
        let skip = address.checked_sub(self.base).and_then(|skip| usize::try_from(skip).ok());
        let Some(bytes) = skip.and_then(|skip| self.bytes.get(skip..)) else { return 0 };
        let length = bytes.len().min(into.len());
        into[..length].copy_from_slice(&bytes[..length]);
        length
    }
}

fn at(base: u64, parts: &[&[u8]]) -> At {
    At { base, bytes: parts.concat(), asked: 0 }
}

fn of(parts: &[&[u8]]) -> Exit {
    exit(&mut at(BASE, parts), BASE)
}

const fn sp(offset: i32) -> Rule {
    Rule { cfa: cfa::SP, cfa_offset: offset, ra: ra::CHECKED, bx_offset: bx::LOST, ..Rule::NONE }
}

fn unclear(why: Unclear) -> Exit {
    Exit::Unclear(why)
}

const PUSH_RBP: &[u8] = &[0x55];
const POP_RBP: &[u8] = &[0x5d];
const PUSH_RBX: &[u8] = &[0x53];
const POP_RBX: &[u8] = &[0x5b];
const MOV_RSP_TO_RBP: &[u8] = &[0x48, 0x89, 0xe5];
const MOV_RBP_TO_RSP: &[u8] = &[0x48, 0x89, 0xec];
const LEAVE: &[u8] = &[0xc9];
const CALL: &[u8] = &[0xe8, 0, 1, 0, 0];
const UD2: &[u8] = &[0x0f, 0x0b];
const JMP_RAX: &[u8] = &[0xff, 0xe0];

const fn sub_rsp(bytes: u8) -> [u8; 4] {
    [0x48, 0x83, 0xec, bytes]
}

const fn add_rsp(bytes: u8) -> [u8; 4] {
    [0x48, 0x83, 0xc4, bytes]
}

#[test]
fn from_the_stack_pointer() {
    assert_eq!(of(&[&[RET]]), Exit::Rule(sp(8)));
    assert_eq!(of(&[&[0xc2, 0x10, 0]]), Exit::Rule(sp(8)), "ret $16");
    assert_eq!(of(&[&add_rsp(0x20), &[RET]]), Exit::Rule(sp(0x28)));
    assert_eq!(of(&[&[0x48, 0x8d, 0x64, 0x24, 0x20], &[RET]]), Exit::Rule(sp(0x28)), "lea 32(%rsp),%rsp");
    assert_eq!(of(&[&[0x48, 0x81, 0xc4, 0, 1, 0, 0], &[RET]]), Exit::Rule(sp(0x108)), "add $256,%rsp");
    assert_eq!(of(&[&[0x9d, 0x66, 0x59, 0x58], &[RET]]), Exit::Rule(sp(8 + 8 + 2 + 8)), "popfq; pop %cx; pop %rax");
    assert_eq!(of(&[&[0x8f, 0x00], &[RET]]), Exit::Rule(sp(16)), "pop (%rax)");
    let entered = [&sub_rsp(8)[..], CALL, &add_rsp(8), &[RET]];
    assert_eq!(of(&entered), Exit::Rule(sp(8)));
}

#[test]
fn saved_registers() {
    let popped = Rule { fp: fp::AT_CFA, fp_offset: -16, bx_offset: -24, ..sp(24) };
    assert_eq!(of(&[POP_RBX, POP_RBP, &[RET]]), Exit::Rule(popped));
    assert_eq!(of(&[PUSH_RBP, PUSH_RBX, POP_RBX, POP_RBP, &[RET]]), Exit::Rule(sp(8)), "the whole function");
    let overwritten = [PUSH_RBP, &[0x31, 0xed, 0x31, 0xdb], POP_RBP, &[RET]];
    assert_eq!(of(&overwritten), Exit::Rule(sp(8)), "xor %ebp,%ebp; xor %ebx,%ebx");
    // mov %rbp,8(%rsp); xor %ebp,%ebp; mov 8(%rsp),%rbp
    let moves = [&sub_rsp(16)[..], &[0x48, 0x89, 0x6c, 0x24, 8, 0x31, 0xed, 0x48, 0x8b, 0x6c, 0x24, 8]];
    assert_eq!(of(&[moves[0], moves[1], &add_rsp(16), &[RET]]), Exit::Rule(sp(8)));
    let stored_over = [&[0x48, 0x89, 0x04, 0x24][..], POP_RBP, &[RET]];
    assert_eq!(of(&stored_over), Exit::Rule(Rule { fp: fp::LOST, ..sp(16) }), "mov %rax,(%rsp)");
    let below = [&[0x48, 0x8b, 0x6c, 0x24, 0xf8][..], &[RET]];
    assert_eq!(of(&below), Exit::Rule(Rule { fp: fp::LOST, ..sp(8) }), "mov -8(%rsp),%rbp");
}

#[test]
fn from_the_frame_pointer() {
    let framed = Rule { cfa: cfa::FP, cfa_offset: 16, fp: fp::AT_CFA, fp_offset: -16, ..sp(0) };
    assert_eq!(of(&[LEAVE, &[RET]]), Exit::Rule(framed));
    assert_eq!(of(&[MOV_RBP_TO_RSP, POP_RBP, &[RET]]), Exit::Rule(framed));
    // lea -8(%rbp),%rsp; pop %rbx; pop %rbp
    let popped = Rule { bx_offset: -24, ..framed };
    assert_eq!(of(&[&[0x48, 0x8d, 0x65, 0xf8], POP_RBX, POP_RBP, &[RET]]), Exit::Rule(popped));
    // push %rbp; mov %rsp,%rbp; and $-32,%rsp; sub %rax,%rsp
    let aligned: [&[u8]; 6] = [PUSH_RBP, MOV_RSP_TO_RBP, &[0x48, 0x83, 0xe4, 0xe0], &[0x48, 0x29, 0xc4], LEAVE, &[RET]];
    assert_eq!(of(&aligned), Exit::Rule(sp(8)), "from the entry");
    assert_eq!(of(&aligned[1..]), Exit::Rule(Rule { fp: fp::AT_CFA, fp_offset: -16, ..sp(16) }));
    assert_eq!(of(&aligned[2..]), Exit::Rule(framed));
    assert_eq!(of(&[&[0xc8, 0x20, 0, 0], LEAVE, &[RET]]), Exit::Rule(sp(8)), "enter $32,$0");
    assert_eq!(of(&[&[0xc8, 0x20, 0, 1, RET]]), unclear(Unclear::UnknownStackPointer), "enter $32,$1; ret");
}

/// `push %rbx; ...; mov -8(%rbp),%rbx; leave; ret`: the place that is read was not yet written at the start.
#[test]
fn two_names_of_one_place() {
    let code = [PUSH_RBX, &[0x48, 0x8b, 0x5d, 0xf8], LEAVE, &[RET]];
    let framed = Rule { cfa: cfa::FP, cfa_offset: 16, fp: fp::AT_CFA, fp_offset: -16, ..sp(0) };
    assert_eq!(of(&code), Exit::Rule(framed));
    assert_eq!(of(&code[1..]), Exit::Rule(Rule { bx_offset: -24, ..framed }));
}

#[test]
fn from_other_registers_and_words() {
    let mov_r14_to_rsp: &[u8] = &[0x4c, 0x89, 0xf4];
    let r14 = Rule { cfa: cfa::REGISTER, register: 14, cfa_offset: 8, ..sp(0) };
    assert_eq!(of(&[mov_r14_to_rsp, &[RET]]), Exit::Rule(r14));
    let mov_word_to_rsp: &[u8] = &[0x48, 0x8b, 0x64, 0x24, 0x20];
    let word = Rule { cfa: cfa::DEREF_SP, cfa_offset: 0x20, extra: 8, ..sp(0) };
    assert_eq!(of(&[mov_word_to_rsp, &[RET]]), Exit::Rule(word));
    // mov %rax,32(%rsp)
    let written = [&[0x48, 0x89, 0x44, 0x24, 0x20], mov_word_to_rsp, &[RET]];
    assert_eq!(of(&written), Exit::Rule(Rule { cfa: cfa::REGISTER, register: 0, cfa_offset: 8, ..sp(0) }));
    // movl $0,32(%rsp)
    let overwritten = [&[0xc7, 0x44, 0x24, 0x20, 0, 0, 0, 0], mov_word_to_rsp, &[RET]];
    assert_eq!(of(&overwritten), unclear(Unclear::UnknownStackPointer));
    // lea 8(%rsp),%r10; and $-32,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10; pop %r10; pop %rbp; lea -8(%r10),%rsp
    let realigned: &[u8] = &[
        0x4c, 0x8d, 0x54, 0x24, 8, 0x48, 0x83, 0xe4, 0xe0, 0x41, 0xff, 0x72, 0xf8, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x52,
        0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x49, 0x8d, 0x62, 0xf8, RET,
    ];
    assert_eq!(of(&[&realigned[17..]]), unclear(Unclear::UnknownStackPointer), "r10 is not yet saved");
    let saved = Rule { cfa: cfa::DEREF_FP, cfa_offset: -8, fp: fp::AT_FP, ..sp(0) };
    assert_eq!(of(&[&realigned[19..]]), Exit::Rule(saved));
    assert_eq!(of(&[&[0x48, 0x8b, 0x20], &[RET]]), unclear(Unclear::UnknownStackPointer), "mov (%rax),%rsp");
    // mov %fs:16(%rsp),%rsp
    assert_eq!(of(&[&[0x64, 0x48, 0x8b, 0x64, 0x24, 16], &[RET]]), unclear(Unclear::UnknownStackPointer));
    assert_eq!(of(&[&[0xbc, 0, 0, 0, 0], &[RET]]), unclear(Unclear::UnknownStackPointer), "mov $0,%esp");
}

#[test]
fn branches() {
    // je over; pop %rbx; ret; over: pop %rbx; ret
    let popped = Rule { bx_offset: -16, ..sp(16) };
    assert_eq!(of(&[&[0x74, 2], POP_RBX, &[RET], POP_RBX, &[RET]]), Exit::Rule(popped));
    assert_eq!(
        of(&[&[0x74, 2], POP_RBX, &[RET], POP_RBP, &[RET]]),
        Exit::Rule(Rule { fp: fp::LOST, bx_offset: bx::LOST, ..sp(16) })
    );
    assert_eq!(of(&[&[0x74, 2], POP_RBX, &[RET], &[RET]]), unclear(Unclear::SeveralDepths));
    assert_eq!(of(&[&[0x74, 2], JMP_RAX, &[RET]]), Exit::Rule(sp(8)), "an indirect jump does not veto");
    assert_eq!(of(&[&[0x74, 2], UD2, &[RET]]), Exit::Rule(sp(8)));
    assert_eq!(of(&[&[0xeb, 1, 0x50, RET]]), Exit::Rule(sp(8)), "jmp over push %rax");
    assert_eq!(of(&[&[0xc7, 0xf8, 1, 0, 0, 0], &[RET, RET]]), Exit::Rule(sp(8)), "xbegin");
    // loop that pops: dec %ecx; je out; pop %rax; jmp back; out: ret
    let pops = of(&[&[0xff, 0xc9, 0x74, 3, 0x58, 0xeb, 0xf9, RET]]);
    assert_eq!(pops, unclear(Unclear::SeveralDepths));
}

/// Registers that a loop changes are unknown where it begins again.
#[test]
fn paths_that_meet() {
    // mov %rsp,%rax; back: je back2; mov %rax,%rsp; ret; back2: xor %eax,%eax; jmp back
    let code: &[u8] = &[0x48, 0x89, 0xe0, 0x74, 4, 0x48, 0x89, 0xc4, RET, 0x31, 0xc0, 0xeb, 0xf6];
    assert_eq!(of(&[&code[..9]]), Exit::Rule(sp(8)));
    assert_eq!(of(&[code]), Exit::Rule(sp(8)), "found before the loop");
}

#[test]
fn linkage_stubs_are_returns() {
    assert_eq!(of(&[&add_rsp(8), &[0xff, 0x25, 0, 0, 0, 0]]), Exit::Rule(sp(16)), "jmp *(%rip)");
    // push (%rip); jmp *(%rip): the first of all stubs
    let first: &[u8] = &[0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0];
    assert_eq!(of(&[first]), unclear(Unclear::IndirectJump));
    assert_eq!(of(&[&first[6..]]), unclear(Unclear::IndirectJump));
    assert_eq!(of(&[JMP_RAX]), unclear(Unclear::IndirectJump));
    assert_eq!(of(&[&[0xff, 0x24, 0xc5, 0, 0, 0, 0]]), unclear(Unclear::IndirectJump), "jmp *0(,%rax,8)");
}

#[test]
fn calls_that_do_not_come_back() {
    let next_function = [PUSH_RBX, POP_RBX, &[RET]].concat();
    assert_eq!(of(&[CALL, &next_function]), unclear(Unclear::SeveralDepths), "no frame has that alignment");
    assert_eq!(of(&[CALL, &add_rsp(8), &[RET]]), Exit::Rule(sp(16)));
    assert_eq!(exit(&mut at(BASE, &[&next_function]), BASE), Exit::Rule(sp(8)));
    assert_eq!(exit_after_call(&mut at(BASE, &[&next_function]), BASE), unclear(Unclear::SeveralDepths));
    assert_eq!(exit_after_call(&mut at(BASE, &[&add_rsp(8), &[RET]]), BASE), Exit::Rule(sp(16)));
    let r10: &[u8] = &[0x4c, 0x89, 0xd4, RET];
    assert!(matches!(of(&[r10]), Exit::Rule(Rule { cfa: cfa::REGISTER, .. })));
    assert_eq!(exit_after_call(&mut at(BASE, &[r10]), BASE), unclear(Unclear::UnknownStackPointer));
}

/// `cmp $3,%edi; ja default; mov (%rax,%rdi,8),%rax; jmp *%rax; default:`
#[test]
fn the_default_of_a_switch() {
    let switch: &[u8] = &[0x83, 0xff, 3, 0x77, 6, 0x48, 0x8b, 0x04, 0xf8, 0xff, 0xe0];
    assert_eq!(of(&[switch, &[RET]]), unclear(Unclear::IndirectJump));
    let another_depth = of(&[&[0x74, 12], switch, &[0x50], &add_rsp(0x28), &[RET]]);
    assert_eq!(another_depth, Exit::Rule(sp(0x30)), "it does not count against what else is found");
    let also_else = of(&[&[0x74, 11], switch, &add_rsp(0x28), &[RET]]);
    assert_eq!(also_else, Exit::Rule(sp(0x30)));
}

#[test]
fn returns_that_are_jumps() {
    assert_eq!(of(&[&[0x50, RET]]), unclear(Unclear::IndirectJump), "push %rax; ret");
    assert_eq!(of(&[&[0x68, 0, 0, 0, 0, RET]]), unclear(Unclear::IndirectJump), "push $0; ret");
    assert_eq!(of(&[&[0x48, 0x89, 0x04, 0x24, RET]]), unclear(Unclear::IndirectJump), "mov %rax,(%rsp); ret");
    assert_eq!(of(&[&[0x0f, 0x29, 0x04, 0x24, RET]]), unclear(Unclear::IndirectJump), "movaps %xmm0,(%rsp); ret");
    assert_eq!(of(&[&[0xe8, 0, 0, 0, 0, RET]]), unclear(Unclear::IndirectJump), "call next; ret");
    assert_eq!(of(&[&[0xe8, 0, 0, 0, 0, 0x58, RET]]), Exit::Rule(sp(8)), "call next; pop %rax; ret");
    assert_eq!(of(&[&[0xcb]]), unclear(Unclear::UnknownStackPointer), "lret");
    assert_eq!(of(&[&[0x48, 0xcf]]), unclear(Unclear::UnknownStackPointer), "iretq");
}

#[test]
fn no_return() {
    assert_eq!(of(&[&[0xeb, 0xfe]]), unclear(Unclear::NoReturn), "jmp self");
    assert_eq!(of(&[&[0x74, 0xfe], UD2]), unclear(Unclear::NoReturn));
    for halt in [&[0xf4][..], UD2, &[0xcc], &[0xf1]] {
        assert_eq!(of(&[halt, &[RET]]), unclear(Unclear::NoReturn), "{halt:x?}");
    }
    assert_eq!(of(&[&[0xcd, 0x80, RET]]), Exit::Rule(sp(8)), "int $0x80");
    assert_eq!(of(&[&[0x0f, 0x05, RET]]), Exit::Rule(sp(8)), "syscall");
    assert_eq!(of(&[&[0x06; 20]]), unclear(Unclear::Undecodable));
    assert_eq!(of(&[&[0x90]]), unclear(Unclear::OutsideCode));
    assert_eq!(of(&[&[0x48, 0x81]]), unclear(Unclear::OutsideCode), "cut off");
    assert_eq!(of(&[&[0xe9, 0, 0, 0, 0x40]]), unclear(Unclear::OutsideCode));
    assert_eq!(of(&[]), unclear(Unclear::OutsideCode));
}

#[test]
fn hostile_code_is_bounded() {
    let endless = &mut at(BASE, &[&[0x90; 1 << 16]]);
    assert_eq!(exit(endless, BASE), unclear(Unclear::TooLong));
    assert!(endless.asked <= 1500 / 256 + 1, "{} reads", endless.asked);
    // push %rax; jmp back: the depth never repeats
    assert_eq!(of(&[&[0x50, 0xeb, 0xfd]]), unclear(Unclear::TooLong));
    // each branch leads into the middle of the next instruction
    let overlapping = [0x74, 0x01].repeat(4096);
    assert!(matches!(of(&[&overlapping]), Exit::Unclear(_)));
    // offsets of frames that are none
    let huge = [0x48, 0x81, 0xc4, 0xff, 0xff, 0xff, 0x7f, RET];
    assert_eq!(of(&[&huge]), unclear(Unclear::UnknownStackPointer), "add $0x7fffffff,%rsp");
    let lea = [0x48, 0x8d, 0xa4, 0x24, 0, 0, 0, 0x80, RET];
    assert_eq!(of(&[&lea]), unclear(Unclear::UnknownStackPointer), "lea -0x80000000(%rsp),%rsp");
    let sum = [0x48, 0x81, 0xc4, 0, 0, 0, 0x30].repeat(3);
    assert_eq!(of(&[&sum, &[RET]]), unclear(Unclear::UnknownStackPointer));
}

#[test]
fn addresses_at_the_end_of_memory() {
    let end = u64::MAX - 3;
    assert_eq!(exit(&mut at(end, &[&[0x90; 4]]), end), unclear(Unclear::OutsideCode));
    assert_eq!(exit(&mut at(end, &[&[0x90, 0x90, 0x90, RET]]), end), unclear(Unclear::OutsideCode));
    assert_eq!(exit(&mut at(end, &[&[0x90, 0x90, RET, 0]]), end), Exit::Rule(sp(8)));
    assert_eq!(exit(&mut at(0, &[&[0xeb, 0xf0]]), 0), unclear(Unclear::OutsideCode), "jmp to below 0");
    // code that begins and ends within a piece
    let odd = BASE + 0xf9;
    assert_eq!(exit(&mut at(odd, &[&[0x90; 9], &[RET]]), odd), Exit::Rule(sp(8)));
}

/// Bytes that often are instructions that matter here.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let parts: Vec<&[u8]> = vec![
        PUSH_RBP,
        POP_RBP,
        PUSH_RBX,
        POP_RBX,
        MOV_RSP_TO_RBP,
        MOV_RBP_TO_RSP,
        LEAVE,
        CALL,
        JMP_RAX,
        UD2,
        &[RET],
        &[0x48, 0x83, 0xec],
        &[0x48, 0x83, 0xc4],
        &[0x74],
        &[0x77],
        &[0xeb],
        &[0x48, 0x8d, 0x64, 0x24],
        &[0x48, 0x8b, 0x64, 0x24],
        &[0x48, 0x89, 0x5c, 0x24],
        &[0x5c],
        &[0x54],
        &[0xc8],
        &[0x48, 0x8d, 0xa5],
    ];
    let part = prop_oneof![
        3 => proptest::sample::select(parts).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 1..3),
    ];
    proptest::collection::vec(part, 0..200).prop_map(|parts| parts.concat())
}

fn check(code: Vec<u8>, base: u64, skip: u64) {
    let mut code = At { base, bytes: code, asked: 0 };
    for exit in [exit(&mut code, base.wrapping_add(skip)), exit_after_call(&mut code, base.wrapping_add(skip))] {
        let Exit::Rule(rule) = exit else { continue };
        assert_eq!(rule.ra, ra::CHECKED);
        assert!(rule.cfa != cfa::SP || rule.cfa_offset >= 8, "{rule:?}");
        assert!(rule.cfa_offset.unsigned_abs() <= 1 << 30 && rule.extra.unsigned_abs() <= 1 << 30, "{rule:?}");
        assert!(rule.bx_offset <= 0, "{rule:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes(code in proptest::collection::vec(any::<u8>(), 0..3000), base in any::<u64>(), skip in 0u64..64) {
        check(code, base, skip);
    }

    #[test]
    fn any_instructions(code in likely(), base in prop_oneof![Just(BASE), Just(u64::MAX - 300)], skip in 0u64..64) {
        check(code, base, skip);
    }
}
