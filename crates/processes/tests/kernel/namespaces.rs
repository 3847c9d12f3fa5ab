//! Other namespaces, other users, and what can be recorded.

use std::process::Command;

use processes::object_file::{How, open_mapped_file};
use processes::stat::State;
use processes::target::{TargetProblem, check_target, exists, is_kernel_thread, state};
use processes::{Proc, Scope, memory, namespaces};

use crate::actor::{Actor, Follower, build, directory};

/// Runs something in a thread without any rights: user and capabilities are a thread's own in Linux.
pub(crate) fn as_nobody<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: changes numbers that belong to this thread, which ends right after.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) }, 0);
            run()
        });
        thread.join().expect("no panic")
    })
}

/// A process in other mount and pid namespaces, whose program cannot be reached by its path from here.
#[test]
fn a_process_in_a_container() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let program = build(&["-static", "-DSTATIC"]);
    let place = directory();
    let script =
        format!("mount -t tmpfs none {0} && cp {1} {0}/inner && exec {0}/inner", place.display(), program.display());
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", &script]);
    let (mut actor, own) = Actor::run_nested(command);
    assert_eq!(own, 1, "the first process of its namespace");
    actor.tell("mmap 0 4000 5");
    follower.follow();
    let inner =
        follower.table.iter().find(|process| process.comm.as_bytes() == b"inner" && process.parent == actor.pid);
    let inner = inner.expect("known by its id out here").clone();
    follower.check(inner.pid);
    assert_eq!(namespaces::namespace_pids(&Proc::system(), inner.pid).expect("it lives"), [inner.pid, 1]);
    let path = place.join("inner");
    assert!(!path.exists(), "not visible from here");
    let range = inner.ranges.iter().find(|range| *range.path == *path).expect("its program is mapped");
    let opened = open_mapped_file(inner.pid, range).expect("it can be opened");
    assert_eq!(opened.how, How::MapFiles);
    assert_eq!(opened.size, std::fs::metadata(&program).expect("the original").len());
    actor.end();
}

#[test]
fn our_own_namespace() {
    let link = std::fs::read_link("/proc/self/ns/pid").expect("/proc");
    let initial = link.to_string_lossy() == "pid:[4026531836]";
    assert_eq!(namespaces::in_initial_pid_namespace().expect("/proc"), initial);
    let proc = Proc::system();
    let own = std::process::id();
    assert_eq!(namespaces::namespace_pids(&proc, own).expect("/proc")[0], own);
    assert_eq!(namespaces::owner(&proc, own).expect("/proc"), rustix::process::getuid().as_raw());
    assert!(namespaces::owner(&proc, 1 << 30).is_err());
}

#[test]
fn what_can_be_recorded() {
    let own = check_target(std::process::id()).expect("this process");
    assert_eq!(own.uid, rustix::process::getuid().as_raw());
    assert!(exists(own.pid) && !exists(1 << 30));
    assert!(matches!(check_target(1 << 30), Err(TargetProblem::NoSuchProcess { .. })));
    let kthreadd = std::fs::read("/proc/2/comm").is_ok_and(|comm| comm == b"kthreadd\n");
    if kthreadd {
        assert!(matches!(check_target(2), Err(TargetProblem::KernelThread { pid: 2, .. })));
        assert!(is_kernel_thread(2).expect("/proc"));
    }
    assert!(!is_kernel_thread(own.pid).expect("/proc"));
    let mut actor = Actor::start();
    let tid = actor.tell("thread") as u32;
    let target = check_target(actor.pid).expect("it can be recorded");
    assert_eq!((target.threads, target.comm.as_bytes()), (2, &b"actor"[..]));
    match check_target(tid) {
        Err(TargetProblem::Thread { pid, .. }) => assert_eq!(pid, actor.pid),
        other => panic!("{other:?}"),
    }
    let zombie = actor.tell("zombie") as u32;
    assert!(matches!(check_target(zombie), Err(TargetProblem::Zombie { .. })));
    assert_eq!(state(zombie).expect("/proc"), State::Zombie);
    actor.end();
}

#[test]
fn another_users_process() {
    needs_root!();
    let actor = Actor::start();
    match as_nobody(|| check_target(actor.pid)) {
        Err(TargetProblem::OtherUser { uid: 0, own_uid: 65534, .. }) => {}
        other => panic!("{other:?}"),
    }
    actor.end();
}

/// The vDSO of a process is the one that the kernel gives everybody, with the code that this process has.
#[test]
fn the_vdso() {
    let actor = Actor::start();
    let image = memory::vdso_image(actor.pid).expect("its vDSO");
    assert!(image.bytes.starts_with(b"\x7fELF"));
    let own = memory::vdso_image(std::process::id()).expect("our vDSO");
    assert_eq!(image.bytes, own.bytes);
    actor.end();
}

#[test]
fn memory_of_a_process() {
    let mut actor = Actor::start();
    let address = actor.tell("mmap 0 2000 3");
    let mut bytes = [1; 0x1800];
    assert_eq!(memory::read_memory(actor.pid, address, &mut bytes).expect("readable"), bytes.len());
    assert!(bytes.iter().all(|byte| *byte == 0));
    actor.tell(&format!("munmap {:x} 1000", address + 0x1000));
    let read = memory::read_memory(actor.pid, address + 0x800, &mut bytes).expect("readable in part");
    assert_eq!(read, 0x800);
    let fault = memory::read_memory(actor.pid, address + 0x1000, &mut bytes).expect_err("nothing there");
    assert_eq!(fault.raw_os_error(), Some(libc::EFAULT));
    let pid = actor.pid;
    actor.end();
    let gone = memory::read_memory(pid, address, &mut bytes).expect_err("no process");
    assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
}
