//! Chains in made-up memory, in the shape of each version.
extern crate std;

use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use abi::python::{Fault, NONE, Python, Slot, flags, run as ends};

use super::{Block, Chain, Cursor, Frame, Step, Turn, state_of, turn};

pub(crate) const TYPE: u64 = 0x50_0000;
pub(crate) const STATE: u64 = 0x10_0000;
/// The base frame of 3.15.
pub(crate) const BASE: u64 = STATE + 0x378;
/// The native stack.
const STACK: u64 = 0x7000_0000;
/// The thread's `_PyCFrame`, in the native frame of the innermost eval loop.
const CFRAME: u64 = STACK + 0xb0;

impl super::Memory for BTreeMap<u64, u64> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        self.get(&address).copied()
    }
}

pub(crate) fn old() -> Python {
    Python {
        code_type: TYPE,
        slot: Slot { loads: 1, steps: [0x310, 0, 0], ..Slot::default() },
        thread_id: 176,
        native_thread_id: NONE,
        current: 24,
        cframe_current: NONE,
        base_frame: NONE,
        code: 32,
        back: 24,
        lasti: 104,
        owner: NONE,
        object_type: 8,
        run: ends::EVERY,
        flags: flags::LASTI_IS_INDEX,
        ..Python::default()
    }
}

pub(crate) fn new() -> Python {
    let offsets = Python { thread_id: 152, native_thread_id: 160, current: 72, code: 0, back: 8, lasti: 56, ..old() };
    Python { owner: 70, run: ends::SHIM, flags: 0, ..offsets }
}

pub(crate) fn v3_11() -> Python {
    Python { current: 56, cframe_current: 8, code: 32, back: 48, owner: 68, run: ends::ENTRY, ..new() }
}

pub(crate) fn v3_12() -> Python {
    Python { thread_id: 136, current: 56, cframe_current: 0, ..new() }
}

pub(crate) fn v3_15() -> Python {
    Python { thread_id: 176, base_frame: 80, owner: 74, tags: 3, ..new() }
}

/// A frame's address and owner; the code object's and the instruction's address are made from it.
type Link = (u64, u8);

fn code_of(address: u64) -> u64 {
    address ^ 0x4000_0000
}

/// Memory in which the state's chain is this one, and the innermost eval loop's run is the first.
fn chain_of(python: &Python, links: &[Link]) -> BTreeMap<u64, u64> {
    chain_from(python, links, 0)
}

/// The same where the first run is that of the eval loop with this number.
fn chain_from(python: &Python, links: &[Link], first_loop: u64) -> BTreeMap<u64, u64> {
    let mut memory = BTreeMap::new();
    let first = links.first().map_or(0, |link| link.0);
    let cframe_of = |run: usize| CFRAME + (first_loop + run as u64) * 0x800;
    memory.insert(STATE + u64::from(python.current), if python.cframe_current == NONE { first } else { cframe_of(0) });
    memory.insert(STATE + 80, BASE);
    if python.cframe_current != NONE {
        let runs = links.split_inclusive(|link| link.1 == if python.run == ends::SHIM { 3 } else { 1 });
        let firsts: Vec<u64> = runs.map(|run| run[0].0).collect();
        for run in 0..=firsts.len() {
            let current = cframe_of(run) + u64::from(python.cframe_current);
            memory.insert(current, firsts.get(run).copied().unwrap_or(0));
            memory.insert(current + 8, if run == firsts.len() { 0 } else { cframe_of(run + 1) });
        }
    }
    for (index, (address, owner)) in links.iter().enumerate() {
        let shim = python.run == ends::SHIM && *owner >= 3 && python.cframe_current == NONE;
        let code = if shim { 0x66_0000 } else { code_of(*address) };
        let mut put = |offset: u16, value| memory.insert(address + u64::from(offset), value);
        put(python.code, code | u64::from(python.tags & 1));
        put(python.back, links.get(index + 1).map_or(0, |link| link.0));
        put(python.lasti, if python.flags & flags::LASTI_IS_INDEX != 0 { 0xdead_0000_0010 } else { code + 0x210 });
        if python.owner != NONE {
            // what lies around the byte is something else
            let shift = u64::from(python.owner & 7) * 8;
            put(python.owner & !7, !(0xff << shift) | u64::from(*owner) << shift);
        }
        memory.insert(code + 8, if shim { 0x51_0000 } else { TYPE });
    }
    memory
}

fn frame(python: &Python, (address, owner): Link) -> Frame {
    let code = code_of(address);
    let lasti = if python.flags & flags::LASTI_IS_INDEX != 0 { 0x10 } else { code + 0x210 };
    Frame { address, code, lasti, owner: if python.owner == NONE { 0 } else { owner } }
}

fn walk(memory: &mut BTreeMap<u64, u64>, python: &Python) -> Vec<Result<Step, Fault>> {
    Chain::new(memory, python, STATE, 1000).take(2000).collect()
}

#[test]
fn chains_of_all_versions() {
    let (a, b, c, d) = (0x1000, 0x2000, 0x3000, 0x4000);
    for (python, links, outermost) in [
        (old(), &[(a, 0), (b, 0), (c, 0)][..], &[true, true, true][..]),
        (v3_11(), &[(a, 0), (b, 1), (c, 0), (d, 1)], &[false, true, false, true]),
        (v3_12(), &[(a, 0), (b, 1), (STACK, 3), (c, 2), (STACK + 0x900, 3)], &[false; 5]),
        (new(), &[(a, 1), (STACK, 3), (c, 0), (d, 0), (STACK + 0x900, 3)], &[false; 5]),
        (v3_15(), &[(a, 1), (STACK, 3), (c, 0), (d, 0), (STACK + 0x900, 3), (BASE, 3)], &[false; 6]),
    ] {
        let mut memory = chain_of(&python, links);
        let expected: Vec<_> = links
            .iter()
            .zip(outermost)
            .filter(|(link, _)| link.0 != BASE)
            .map(|(link, outermost)| match link.1 {
                3 => Ok(Step::Shim(link.0)),
                _ => Ok(Step::Python { frame: frame(&python, *link), outermost: *outermost }),
            })
            .collect();
        assert_eq!(walk(&mut memory, &python), expected, "{python:?}");
    }
}

#[test]
fn a_thread_without_frames() {
    for python in [old(), v3_11(), v3_12(), new()] {
        assert_eq!(walk(&mut chain_of(&python, &[]), &python), []);
    }
    let python = v3_15();
    assert_eq!(walk(&mut chain_of(&python, &[(BASE, 3)]), &python), []);
    assert_eq!(walk(&mut BTreeMap::new(), &python), [Err(Fault::StateUnreadable)]);
}

#[test]
fn instructions_before_the_first() {
    let python = old();
    let mut memory = chain_of(&python, &[(0x1000, 0)]);
    memory.insert(0x1000 + 104, 0x0000_0007_ffff_ffff);
    let steps = walk(&mut memory, &python);
    assert!(matches!(steps[..], [Ok(Step::Python { frame: Frame { lasti: u64::MAX, .. }, .. })]), "{steps:?}");
}

#[test]
fn hostile_chains_end() {
    let python = v3_15();
    let links = [(0x1000, 0), (0x2000, 0), (STACK, 3), (0x3000, 0), (STACK + 0x900, 3), (BASE, 3)];
    let last = |at: u64, value: Option<u64>| {
        let mut memory = chain_of(&python, &links);
        match value {
            Some(value) => memory.insert(at, value),
            None => memory.remove(&at),
        };
        walk(&mut memory, &python).pop()
    };
    // from each link back to itself and to each before it
    for (index, (from, _)) in links.into_iter().enumerate() {
        for (to, _) in &links[..=index.min(4)] {
            let expected = if from == BASE { Fault::BadFrame } else { Fault::Loop };
            assert_eq!(last(from + 8, Some(*to)), Some(Err(expected)), "{from:#x} to {to:#x}");
        }
    }
    assert_eq!(last(0x1008, Some(0x2004)), Some(Err(Fault::FrameMisaligned)));
    assert_eq!(last(0x1008, Some(u64::MAX - 7)), Some(Err(Fault::FrameUnreadable)));
    assert_eq!(last(0x2000, None), Some(Err(Fault::FrameUnreadable)));
    assert_eq!(last(0x2000, Some(0x66_0001)), Some(Err(Fault::NotCode)));
    assert_eq!(last(0x2000, Some(0)), Some(Err(Fault::NotCode)));
    assert_eq!(last(0x2000 + 72, Some(5 << 16)), Some(Err(Fault::BadFrame)));
    let python = v3_11();
    let mut memory = chain_of(&python, &[(0x1000, 2)]);
    assert_eq!(walk(&mut memory, &python), [Err(Fault::BadFrame)]);
}

#[test]
fn long_chains_are_cut() {
    let python = old();
    let links: Vec<_> = (1..=1500).map(|n| (n * 0x100, 0)).collect();
    let steps = walk(&mut chain_of(&python, &links), &python);
    assert_eq!(steps.len(), 1001);
    assert_eq!(steps[1000], Err(Fault::TooMany));
}

#[test]
fn from_the_thread_pointer_to_the_state() {
    let pointer = 0x7fff_0000;
    let mut python = old();
    let mut memory = BTreeMap::from([(pointer + 0x310, STATE), (STATE + 176, pointer)]);
    assert_eq!(state_of(&mut memory, &python, pointer), Ok(STATE));
    // a second level, and a pthread structure below the thread pointer
    python.slot = Slot { loads: 2, steps: [-0x100, 0x28, 0], thread_self: -0x740, reserved: 0 };
    memory.extend([(pointer - 0x100, 0x9000), (0x9028, STATE), (STATE + 176, pointer - 0x740)]);
    assert_eq!(state_of(&mut memory, &python, pointer), Ok(STATE));
    memory.insert(STATE + 176, pointer);
    assert_eq!(state_of(&mut memory, &python, pointer), Err(Fault::OtherThread));
    memory.remove(&(STATE + 176));
    assert_eq!(state_of(&mut memory, &python, pointer), Err(Fault::StateUnreadable));
    memory.insert(pointer - 0x100, 0);
    assert_eq!(state_of(&mut memory, &python, pointer), Err(Fault::NoState));
    memory.remove(&(pointer - 0x100));
    assert_eq!(state_of(&mut memory, &python, pointer), Err(Fault::SlotUnreadable));
    python.slot.loads = 0;
    assert_eq!(state_of(&mut memory, &python, pointer), Err(Fault::NoState));
    python.slot.loads = u32::MAX;
    assert_eq!(state_of(&mut memory, &python, pointer), Err(Fault::SlotUnreadable));
}

/// What a walk shows that comes to these native eval loops: a letter for each Python frame, `N` for an eval loop without.
fn interleaved(memory: &mut BTreeMap<u64, u64>, python: &Python, loops: &[(u64, u64)]) -> (String, Cursor) {
    let (mut cursor, mut block) = (Cursor::default(), Block::ZERO);
    cursor.begin(memory, python, STATE);
    let mut shown = String::new();
    for (low, high) in loops {
        cursor.enter(*low, *high);
        let before = shown.len();
        let mut go_on = true;
        while go_on {
            let found = turn(memory, python, &mut cursor, &mut block);
            go_on = matches!(found, Turn::Frame(_));
            match found {
                Turn::Frame(frame) | Turn::Last(frame) => {
                    shown.push(char::from(b'a' + (frame.address >> 12) as u8 - 1))
                }
                Turn::GiveBack => shown.truncate(before),
                Turn::Over => {}
            }
        }
        assert_eq!(cursor.taken() as usize, shown.len() - before);
        if cursor.taken() == 0 {
            shown.push('N');
        }
    }
    (shown, cursor)
}

const A: Link = (0x1000, 0);
const B: Link = (0x2000, 0);
const C: Link = (0x3000, 0);
/// Native frames of eval loops, innermost first, and the shim in each.
const LOOPS: [(u64, u64); 3] =
    [(STACK, STACK + 0x100), (STACK + 0x800, STACK + 0x900), (STACK + 0x1000, STACK + 0x1100)];
const SHIMS: [Link; 3] = [(STACK + 0x40, 3), (STACK + 0x840, 3), (STACK + 0x1040, 3)];

#[test]
fn runs_belong_to_their_eval_loops() {
    let entry = |link: Link| (link.0, 1);
    for (python, links) in [
        (v3_11(), &[A, entry(B), entry(C)][..]),
        (v3_12(), &[A, B, SHIMS[0], C, SHIMS[1]]),
        (new(), &[A, B, SHIMS[0], C, SHIMS[1]]),
        (v3_15(), &[A, B, SHIMS[0], C, SHIMS[1], (BASE, 3)]),
    ] {
        let mut memory = chain_of(&python, links);
        let (shown, cursor) = interleaved(&mut memory, &python, &LOOPS[..1]);
        assert_eq!((shown.as_str(), cursor.is_finished()), ("ab", false), "{python:?}");
        let (shown, cursor) = interleaved(&mut memory, &python, &LOOPS[..2]);
        assert_eq!((shown.as_str(), cursor.is_finished()), ("abc", true), "{python:?}");
        let (shown, cursor) = interleaved(&mut memory, &python, &LOOPS);
        assert_eq!((shown.as_str(), cursor.fault()), ("abcN", None), "an eval loop that has no frame any more");
    }
    let mut memory = chain_of(&old(), &[A, B, C]);
    assert_eq!(interleaved(&mut memory, &old(), &LOOPS).0, "abc");
}

#[test]
fn an_eval_loop_that_is_not_in_the_chain_gets_no_frames() {
    let links = [A, B, SHIMS[1], C, SHIMS[2]];
    for python in [new(), v3_15()] {
        let mut memory = chain_of(&python, &links);
        assert_eq!(interleaved(&mut memory, &python, &LOOPS).0, "Nabc", "{python:?}");
    }
    // the _PyCFrame of the thread lies in the second eval loop
    for (python, links) in [(v3_11(), &[A, (0x2000, 1), (0x3000, 1)][..]), (v3_12(), &links)] {
        let mut memory = chain_from(&python, links, 1);
        assert_eq!(interleaved(&mut memory, &python, &LOOPS).0, "Nabc", "{python:?}");
    }
}

#[test]
fn a_shim_elsewhere_gives_the_frames_back() {
    let python = new();
    let mut memory = chain_of(&python, &[A, (STACK + 0x400, 3), B, SHIMS[1]]);
    let (shown, cursor) = interleaved(&mut memory, &python, &LOOPS);
    assert_eq!((shown.as_str(), cursor.is_finished(), cursor.fault()), ("NNN", false, None));
}

/// The chain goes on at the `_PyCFrame` before.
#[test]
fn a_frame_that_is_none_cuts_its_eval_loop_only() {
    for (python, links) in [(v3_11(), &[C, (0x4000, 1), A, (0x2000, 1)][..]), (v3_12(), &[C, SHIMS[0], A, B, SHIMS[1]])]
    {
        let memory = chain_of(&python, links);
        let field = u64::from(python.cframe_current);
        let unmapped = 0x6_0000;
        let not_code = C.0 + 0x800;
        for garbage in [unmapped, not_code, 0x1001] {
            let mut memory = memory.clone();
            memory.extend([(not_code + u64::from(python.code), 0x9_0000), (0x9_0008, 0x1234)]);
            for offset in [python.back, python.lasti, python.owner & !7] {
                memory.insert(not_code + u64::from(offset), 0);
            }
            memory.insert(CFRAME + field, garbage);
            assert_eq!(interleaved(&mut memory, &python, &LOOPS).0, "NabN", "{garbage:#x} {python:?}");
            // garbage there, too: there is no other explanation left
            memory.insert(CFRAME + 0x800 + field, garbage);
            let (shown, cursor) = interleaved(&mut memory, &python, &LOOPS);
            assert_eq!((shown.as_str(), cursor.fault().is_some()), ("NNN", true), "{garbage:#x} {python:?}");
        }
    }
}

/// Its own `_PyCFrame` lies as far below the top of an eval loop's native frame as that of the next one does.
#[test]
fn an_eval_loop_that_has_not_filled_its_cframe_is_passed() {
    for (python, links) in [(v3_11(), &[A, (0x2000, 1), (0x3000, 1)][..]), (v3_12(), &[A, B, SHIMS[1], C, SHIMS[2]])] {
        let mut memory = chain_from(&python, links, 1);
        memory.insert(STATE + u64::from(python.current), CFRAME);
        memory.insert(CFRAME + u64::from(python.cframe_current), 0x1001);
        let (mut cursor, mut block) = (Cursor::default(), Block::ZERO);
        cursor.begin(&mut memory, &python, STATE);
        cursor.enter(LOOPS[0].0, LOOPS[0].1);
        cursor.pass();
        cursor.enter(LOOPS[1].0, LOOPS[1].1);
        assert!(!cursor.is_finished());
        let found = turn(&mut memory, &python, &mut cursor, &mut block);
        assert_eq!(found, Turn::Frame(frame(&python, A)), "{python:?}");
    }
}

#[test]
fn a_fault_ends_python_in_this_walk() {
    let python = new();
    let mut memory = chain_of(&python, &[A, SHIMS[0], B, C, SHIMS[1]]);
    memory.remove(&(C.0 + 8));
    let (shown, cursor) = interleaved(&mut memory, &python, &LOOPS);
    assert_eq!((shown.as_str(), cursor.fault()), ("aNN", Some(Fault::FrameUnreadable)));
    let (shown, cursor) = interleaved(&mut BTreeMap::new(), &python, &LOOPS);
    assert_eq!((shown.as_str(), cursor.fault()), ("NNN", Some(Fault::StateUnreadable)));
}

#[test]
fn a_turn_is_bounded_in_a_circle() {
    let python = new();
    let mut memory = chain_of(&python, &[A, B]);
    memory.insert(B.0 + 8, A.0);
    let (mut cursor, mut block) = (Cursor::default(), Block::ZERO);
    cursor.begin(&mut memory, &python, STATE);
    cursor.enter(LOOPS[0].0, LOOPS[0].1);
    // the caller's budget ends it
    assert!((0..10_000).all(|_| matches!(turn(&mut memory, &python, &mut cursor, &mut block), Turn::Frame(_))));
    assert_eq!(cursor.taken(), 10_000);
}
