//! A live process in whose memory single words are others: each check refuses by the name of what it sees.

use std::collections::BTreeMap;

use python::layout::LayoutRefusal;
use python::layout::confirm::{Types, confirm};
use python::layout::frames::{Process, Words, check_frames};
use python::layout::process::{Census, ThreadIdentity, check_runtime, check_thread_state};
use python::{Memory, Unreadable};
use walk::cpython::{Chain, Step};

use crate::targets::Live;
use crate::{Case, LIMIT, each_case};

/// Memory with other bytes in some places, or none.
struct Patched {
    live: Live,
    words: BTreeMap<u64, u64>,
    gone: Option<u64>,
}

impl Memory for Patched {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let inside = |at: u64| (address..address.saturating_add(into.len() as u64)).contains(&at);
        if self.gone.is_some_and(inside) {
            return Err(Unreadable { address, length: into.len() });
        }
        self.live.read(address, into)?;
        for (at, word) in &self.words {
            for (index, byte) in word.to_le_bytes().into_iter().enumerate() {
                let offset = at.wrapping_add(index as u64).wrapping_sub(address);
                if let Some(place) = usize::try_from(offset).ok().and_then(|offset| into.get_mut(offset)) {
                    *place = byte;
                }
            }
        }
        Ok(())
    }
}

fn patched(case: &Case, words: &[(u64, u64)]) -> Patched {
    Patched { live: case.target.memory(), words: words.iter().copied().collect(), gone: None }
}

fn live(refusal: Option<LayoutRefusal>) -> &'static str {
    match refusal {
        Some(LayoutRefusal::Live { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

#[test]
fn types_that_are_others() {
    each_case(|_, case| {
        let layout = case.layout();
        let Types { code, frame, unicode, bytes } = case.types;
        let confirm = |memory: &Patched, types: &Types| confirm(&layout, memory, types);
        assert!(confirm(&patched(case, &[]), &case.types).is_ok_and(|confirmed| confirmed.len() >= 17));

        let mixed = Types { frame: code, ..case.types };
        let expected = LayoutRefusal::NotTheType { type_name: "frame", address: code };
        assert_eq!(confirm(&patched(case, &[]), &mixed), Err(expected));
        let basicsize = code + u64::from(layout.types.basicsize);
        let refused = confirm(&patched(case, &[(basicsize, 200_000)]), &case.types);
        assert!(matches!(refused, Err(LayoutRefusal::Disagrees { field: "code.size", found: 200_000, .. })));
        // an array of members that ends at once
        let refused = confirm(&patched(case, &[(code + u64::from(layout.types.members), 0x1000)]), &case.types);
        assert!(matches!(refused, Err(LayoutRefusal::Memory { .. })), "{refused:?}");
        let members = case.target.memory().u64(code + u64::from(layout.types.members)).expect("members");
        let refused = confirm(&patched(case, &[(members, 0)]), &case.types);
        assert!(matches!(refused, Err(LayoutRefusal::NoMember { member: "co_argcount", .. })), "{refused:?}");
        let refused = confirm(&patched(case, &[(unicode + u64::from(layout.types.flags), 0)]), &case.types);
        assert_eq!(live(refused.err()), "type.flags");
        // the name of a type 16 bytes further on
        let name = u64::from(layout.types.name);
        let own = case.target.memory().u64(code + name).expect("a name");
        let refused = confirm(&patched(case, &[(code + name, 0x1000), (code + name + 16, own)]), &case.types);
        assert_eq!(refused, Err(LayoutRefusal::ObjectHeader(16)));
        for gone in [code, frame, unicode, bytes] {
            let memory = Patched { gone: Some(gone + name), ..patched(case, &[]) };
            assert!(matches!(confirm(&memory, &case.types), Err(LayoutRefusal::Memory { .. })));
        }
    });
}

#[test]
fn runtimes_that_are_others() {
    each_case(|interpreter, case| {
        let layout = case.layout();
        let Some(head_at) = case.head_at(&layout) else { return };
        let take = |memory: &Patched| Census::take(&layout, memory, head_at);
        let census = take(&patched(case, &[])).expect("a census");
        let newest = &census.interpreters[0];
        let main = census.interpreters.last().expect("the main interpreter");
        let next = u64::from(layout.interpreter.next);

        assert_eq!(take(&patched(case, &[(head_at, 0)])), Err(LayoutRefusal::NotInitialised));
        let refused = take(&patched(case, &[(main.address + next, newest.address)]));
        assert!(matches!(refused, Err(LayoutRefusal::Endless { what: "interpreters", .. })), "{refused:?}");
        let (first, last) = (main.threads[0], *main.threads.last().expect("a thread"));
        let refused = take(&patched(case, &[(last + u64::from(layout.thread.next), first)]));
        assert!(matches!(refused, Err(LayoutRefusal::Endless { what: "threads", .. })), "{refused:?}");
        let refused = take(&patched(case, &[(first + u64::from(layout.thread.interp), newest.address)]));
        assert_eq!(live(refused.err()), "thread.interp");
        let refused = take(&patched(case, &[(first + u64::from(layout.thread.prev), last)]));
        assert_eq!(live(refused.err()), "thread.prev");

        let thread = &case.target.threads[0];
        let state = case.states(&layout, &census)[&thread.thread_self];
        let identity = ThreadIdentity { thread_self: thread.thread_self, native: thread.native };
        let check = |state, identity| {
            check_thread_state(&layout, &patched(case, &[]), &census, state, identity)
                .err()
                .map(|refusal| live(Some(refusal)))
        };
        assert_eq!(check(state, identity), None);
        let other = ThreadIdentity { thread_self: thread.thread_self + 0x1000, ..identity };
        assert_eq!(check(state, other), Some("thread.thread_id"));
        if thread.native.is_some() && layout.thread.native_thread_id.is_some() {
            let other = ThreadIdentity { native: Some(1), ..identity };
            assert_eq!(check(state, other), Some("thread.native_thread_id"));
        }
        let empty = Census { interpreters: Vec::new() };
        let refused = check_thread_state(&layout, &patched(case, &[]), &empty, state, identity);
        assert_eq!(live(refused.err()), "interpreter.threads_head");

        let Some(runtime) = case.runtime else { return };
        let refused = |offset: Option<u32>, value| {
            let at = runtime + u64::from(offset?);
            check_runtime(&layout, &patched(case, &[(at, value)]), runtime, &census).err()
        };
        // a runtime before the end of Py_Initialize: the flags are 0, and there is no key
        let flags = layout.runtime.initialized.map(|offset| offset & !7);
        assert_eq!(refused(flags, 0), Some(LayoutRefusal::NotInitialised), "{}", interpreter.name);
        if layout.runtime.auto_tss_key.is_some() {
            assert_eq!(refused(layout.runtime.auto_tss_key, 0), Some(LayoutRefusal::NotInitialised));
            assert_eq!(live(refused(layout.runtime.auto_tss_key, 5000 << 32 | 1)), "runtime.auto_tss_key");
        }
        assert_eq!(live(refused(layout.runtime.interpreters_main, newest.address)), "interpreter.id");
        assert_eq!(live(refused(layout.runtime.interpreters_next, 1)), "interpreter.id");
        if layout.runtime.tstate_current.is_some() {
            assert_eq!(live(refused(layout.runtime.tstate_current, 8)), "runtime.tstate_current");
        }
    });
}

#[test]
fn frames_that_are_others() {
    each_case(|interpreter, case| {
        let layout = case.layout();
        if case.head_at(&layout).is_none() {
            return;
        }
        let (facts, types) = (case.facts(&layout), case.types);
        let census = case.census(&layout).expect("a census");
        let state = case.states(&layout, &census)[&case.target.threads[0].thread_self];
        let check = |words: &[(u64, u64)]| {
            let process = Process { layout: &layout, facts: &facts, types: &types, memory: &patched(case, words) };
            check_frames(&process, state, LIMIT).err()
        };
        assert_eq!(check(&[]), None, "{}", interpreter.name);
        let memory = case.target.memory();
        let frames: Vec<_> = Chain::new(&mut Words(&memory), &facts, state, LIMIT)
            .filter_map(|step| match step {
                Ok(Step::Python { frame, .. }) => Some(frame),
                _ => None,
            })
            .collect();
        let [inner, caller] = [frames[0], frames[1]];
        let at = |base: u64, offset: u32| base + u64::from(offset);
        let back = layout.frame.back;
        let faults = |words: &[(u64, u64)]| match check(words) {
            Some(LayoutRefusal::Chain { fault, .. }) => fault,
            other => panic!("{other:?}"),
        };
        use abi::python::Fault;
        assert_eq!(faults(&[(at(caller.address, back), inner.address)]), Fault::Loop);
        assert_eq!(faults(&[(at(inner.address, back), 0x1000)]), Fault::FrameUnreadable);
        assert_eq!(faults(&[(at(inner.address, back), caller.address + 1)]), Fault::FrameMisaligned);
        assert_eq!(faults(&[(at(inner.address, layout.frame.code), types.code)]), Fault::NotCode);
        // from 3.11 on a chain that stops short is not at the end of a run; with a base frame it has none
        match check(&[(at(inner.address, back), 0)]) {
            None => assert!(layout.version.minor <= 10),
            Some(LayoutRefusal::Chain { fault, .. }) => assert_eq!(fault, Fault::BadFrame),
            Some(refusal) => assert_eq!(refusal, LayoutRefusal::ChainEnd { frames: 1 }),
        }
        let lasti = at(caller.address, layout.frame.lasti);
        assert_eq!(live(check(&[(lasti, 0x7fff_0000)])), "frame.lasti");
        let name = memory.u64(at(caller.code, layout.code.name)).expect("a name");
        assert_eq!(live(check(&[(at(name, layout.text.state), 0xffff_ffff)])), "text.state");
        assert_eq!(live(check(&[(at(name, layout.text.ascii), 0xff00_ff00_ff00_ff00)])), "code.name");
        let table = memory.u64(at(caller.code, layout.code.linetable)).expect("a line table");
        let length = memory.u64(at(table, layout.object.ob_size)).expect("a length");
        let end = at(table, layout.text.bytes) + length;
        assert_eq!(live(check(&[(end, 0x0101)])), "code.linetable");
    });
}
