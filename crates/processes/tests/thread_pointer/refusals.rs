//! What cannot be had is refused by name, and nothing stays behind.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use processes::Proc;
use processes::stat::State;
use processes::thread_pointer::{Patience, ThreadProblem, of_thread, of_threads, with_stopped};

use crate::target::{Target, reader};

#[test]
fn a_parent_of_a_vfork_is_in_uninterruptible_sleep() {
    let Some(mut target) = Target::start(&["vfork"]) else { return };
    target.wait_until("in vfork", |state| state == State::DiskSleep);
    for _ in 0..5 {
        match of_thread(target.pid, Patience::default()) {
            Err(ThreadProblem::Uninterruptible { waited, .. }) => assert!(waited >= Duration::from_millis(50)),
            other => panic!("{other:?}"),
        }
        target.assert_untraced();
    }
    let held = with_stopped(target.pid, Patience::default(), Duration::from_secs(1), |_| panic!("looked at"));
    assert!(matches!(held, Err(ThreadProblem::Uninterruptible { .. })));
    target.assert_untraced();
    target.hang_up();
    assert_eq!(target.line(), ["child", "7"]);
    assert!(target.child.wait().expect("it ends").success());
}

#[test]
fn others_are_looked_at_although_one_does_not_stop() {
    let (Some(sleeper), Some(target)) = (Target::start(&["vfork"]), Target::start(&["threads", "2"])) else { return };
    sleeper.wait_until("in vfork", |state| state == State::DiskSleep);
    let others: Vec<u32> = target.threads.keys().copied().collect();
    let tids = [others[0], sleeper.pid, others[1], u32::MAX, 0, others[2]];
    let results = of_threads(&tids, Patience::default());
    assert!(matches!(
        results[..],
        [
            Ok(_),
            Err(ThreadProblem::Uninterruptible { .. }),
            Ok(_),
            Err(ThreadProblem::NoSuchThread { .. }),
            Err(ThreadProblem::NoSuchThread { .. }),
            Ok(_)
        ]
    ));
    sleeper.assert_untraced();
    target.assert_untraced();
}

#[test]
fn traced_by_another() {
    let Some(target) = Target::start(&["threads", "1"]) else { return };
    let Some(tracer) = Target::start(&["trace", &target.pid.to_string()]) else { return };
    match of_thread(target.pid, Patience::default()) {
        Err(ThreadProblem::Traced { tracer: by, .. }) => assert_eq!(by, tracer.pid),
        other => panic!("{other:?}"),
    }
    drop(tracer);
    target.wait_until("untraced", |state| state != State::Stopped);
    of_thread(target.pid, Patience::default()).expect("it stops");
}

#[test]
fn threads_that_have_none() {
    let own = of_thread(std::process::id(), Patience::default());
    assert!(matches!(own, Err(ThreadProblem::Own { .. })), "{own:?}");
    let none = of_thread(i32::MAX as u32, Patience::default());
    assert!(matches!(none, Err(ThreadProblem::NoSuchThread { .. })), "{none:?}");

    let Some(mut target) = Target::start(&["vfork"]) else { return };
    target.hang_up();
    target.wait_until("ended", |state| state == State::Zombie);
    let ended = of_thread(target.pid, Patience::default());
    assert!(matches!(ended, Err(ThreadProblem::Ended { .. })), "{ended:?}");
}

#[test]
fn a_thread_of_the_kernel() {
    if rustix::process::getuid().as_raw() != 0 {
        return println!("SKIPPED: needs root");
    }
    let proc = Proc::system();
    let pids = proc.pids().expect("/proc");
    let Some(pid) = pids.into_iter().find(|pid| proc.stat(*pid).is_ok_and(|stat| stat.is_kernel_thread)) else {
        return println!("SKIPPED: no kernel threads are visible here");
    };
    let result = of_thread(pid, Patience::default());
    assert!(matches!(result, Err(ThreadProblem::KernelThread { .. })), "{result:?}");
    let memory = processes::memory::ProcessMemory::open(pid);
    assert!(matches!(memory, Err(processes::memory::MemoryProblem::NoMemory { .. })), "{memory:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_of_32_bits() {
    let Some(target) = Target::start(&["narrow"]) else { return };
    std::thread::sleep(Duration::from_millis(50));
    let result = of_thread(target.pid, Patience::default());
    assert!(matches!(result, Err(ThreadProblem::ThirtyTwoBit { .. })), "{result:?}");
    target.assert_untraced();
    target.wait_until("running", |state| state == State::Running);
}

#[test]
fn another_user() {
    if rustix::process::getuid().as_raw() != 0 {
        return println!("SKIPPED: needs root");
    }
    let Some(target) = Target::start(&["threads", "1"]) else { return };
    let Ok(mut child) = reader(target.pid).uid(65534).gid(65534).spawn() else {
        return println!("SKIPPED: another user cannot run this program");
    };
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("it prints");
    child.wait().expect("it ends");
    let remedy = "it belongs to user 0, you are user 65534; run as that user, or with CAP_SYS_PTRACE";
    assert!(said.contains(&format!("memory: the memory of process {} cannot be read: {remedy}", target.pid)), "{said}");
    assert!(said.contains(&format!("cannot be stopped: {remedy}")), "{said}");
}
