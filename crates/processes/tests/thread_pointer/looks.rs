//! What is read is right.

use std::time::Duration;

use processes::memory::ProcessMemory;
use processes::stat::State;
use processes::thread_pointer::{Patience, of_thread, of_threads, with_stopped};

use crate::target::Target;

fn tids(target: &Target) -> Vec<u32> {
    target.threads.keys().copied().collect()
}

/// Each thread's pointer is what it says itself.
fn check(target: &Target) {
    let results = of_threads(&tids(target), Patience::default());
    for ((tid, pointer), result) in target.threads.iter().zip(results) {
        let looked = result.unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(looked.registers.thread_pointer, pthread_to_thread_pointer(*pointer), "thread {tid}");
        assert!(looked.registers.pc() != 0 && looked.registers.sp() != 0);
    }
}

/// `pthread_self()` is the thread pointer on x86_64. On aarch64 glibc's descriptor lies before it, by its size.
fn pthread_to_thread_pointer(pthread: u64) -> u64 {
    match cfg!(target_arch = "x86_64") {
        true => pthread,
        false => pthread + sizeof_pthread(),
    }
}

fn sizeof_pthread() -> u64 {
    // SAFETY: the symbol, if it is there, is a 32-bit constant of the C library.
    unsafe {
        let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"_thread_db_sizeof_pthread".as_ptr()).cast::<u32>();
        symbol.as_ref().map_or(0, |size| u64::from(*size))
    }
}

#[test]
fn fifty_threads_busy_and_blocked() {
    let Some(mut target) = Target::start(&["threads", "50"]) else { return };
    assert_eq!(target.threads.len(), 51);
    check(&target);
    target.assert_untraced();
    let before = target.counters();
    std::thread::sleep(Duration::from_millis(500));
    let after = target.counters();
    let moved = |number: usize| after[number] > before[number];
    // those that wait for a byte or a lock that never comes must still do so
    assert!((0..50).all(|number| moved(number) == (number % 5 < 3)), "{before:?} {after:?}");
}

#[test]
fn a_stopped_process_stays_stopped() {
    let Some(mut target) = Target::start(&["threads", "5"]) else { return };
    target.signal(libc::SIGSTOP);
    target.wait_until("stopped", |state| state == State::Stopped);
    let before = stops(&target);
    assert_eq!(before, 1);
    for _ in 0..50 {
        check(&target);
        target.wait_until("stopped again", |state| state == State::Stopped);
    }
    target.assert_untraced();
    assert_eq!(stops(&target), 0, "its parent was told of a stop that was none");
    target.signal(libc::SIGCONT);
    target.wait_until("continued", |state| state != State::Stopped);
    let (first, _) = (target.counters(), std::thread::sleep(Duration::from_millis(100)));
    assert!(target.counters()[0] > first[0]);
}

/// Stops of a child that its parent has not been told of yet.
fn stops(target: &Target) -> usize {
    let mut stops = 0;
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    while unsafe { libc::waitpid(target.pid as i32, &raw mut status, libc::WUNTRACED | libc::WNOHANG) } > 0 {
        stops += 1;
    }
    stops
}

#[test]
fn a_thread_stands_still_while_it_is_looked_at() {
    let Some(target) = Target::start(&["threads", "1"]) else { return };
    let counter = u64::from_str_radix(&target.ready[0], 16).expect("an address");
    let memory = ProcessMemory::open(target.pid).expect("its memory");
    let read = || {
        let mut bytes = [0; 8];
        memory.read(counter, &mut bytes).expect("its counter");
        u64::from_le_bytes(bytes)
    };
    let busy = *target.threads.keys().last().expect("a thread");
    let nap = || std::thread::sleep(Duration::from_millis(30));
    for _ in 0..5 {
        let held = with_stopped(busy, Patience::default(), Duration::from_secs(60), |registers| {
            let first = read();
            nap();
            (registers.thread_pointer, first, read())
        });
        let held = held.expect("it stops");
        let (pointer, first, second) = held.value;
        assert_eq!(pointer, pthread_to_thread_pointer(target.threads[&busy]));
        assert!(held.in_time && held.held >= Duration::from_millis(30));
        assert_eq!(first, second);
        nap();
        assert!(read() > second, "it goes on");
    }
}

#[test]
fn a_look_that_takes_too_long_holds_nothing() {
    let Some(target) = Target::start(&["threads", "1"]) else { return };
    let busy = *target.threads.keys().last().expect("a thread");
    let held = with_stopped(busy, Patience::default(), Duration::from_millis(5), |_| {
        target.wait_until("let go", |state| state != State::Stopped);
        target.assert_untraced();
    });
    assert!(!held.expect("it stops").in_time);
}

#[test]
fn a_look_that_panics_holds_nothing() {
    let Some(target) = Target::start(&["threads", "1"]) else { return };
    let busy = *target.threads.keys().last().expect("a thread");
    let panic = std::panic::catch_unwind(|| {
        with_stopped(busy, Patience::default(), Duration::from_secs(600), |_| {
            std::panic::resume_unwind(Box::new("look"))
        })
    });
    let Err(panic) = panic else { panic!("it does not panic") };
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"look"));
    target.assert_untraced();
    target.wait_until("let go", |state| state != State::Stopped);
}

#[test]
fn registers_of_a_blocked_thread_are_those_that_proc_shows() {
    let Some(target) = Target::start(&["other"]) else { return };
    target.wait_until("waiting", |state| state == State::Sleeping);
    let looked = of_thread(target.pid, Patience::default()).expect("it stops");
    target.wait_until("waiting again", |state| state == State::Sleeping);
    let line = std::fs::read_to_string(format!("/proc/{}/syscall", target.pid)).expect("readable");
    let words: Vec<u64> =
        line.split(" 0x").skip(1).filter_map(|word| u64::from_str_radix(word.trim(), 16).ok()).collect();
    let [.., sp, pc] = words[..] else { panic!("{line:?}") };
    assert_eq!(looked.registers.sp(), sp);
    // aarch64 has already gone back to the instruction of the call, to make it again
    let back = pc - looked.registers.pc();
    assert!(back == 0 || cfg!(target_arch = "aarch64") && back == 4, "{back}");
}
