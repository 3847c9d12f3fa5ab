//! Looks at threads of live programs, which must not notice. The oracle is what the programs say themselves: the address that
//! `pthread_self` gives, counters that go on, signals that were counted.

mod disturbance;
mod kills;
mod looks;
mod memory;
mod refusals;
mod target;

use processes::thread_pointer::{Patience, ThreadProblem, of_threads};
use processes::{Proc, memory::ProcessMemory};

/// Not a test, but the reader that [`target::reader`] starts: looks at all threads of a process without end.
#[test]
fn reader() {
    let Some(pid) = std::env::var(target::READ).ok().and_then(|pid| pid.parse::<u32>().ok()) else { return };
    let proc = Proc::system();
    println!("begins");
    if let Err(problem) = ProcessMemory::open(pid) {
        println!("memory: {problem}");
    }
    while let Ok(tids) = proc.tids(pid) {
        for result in of_threads(&tids, Patience::default()) {
            match result {
                Ok(_) | Err(ThreadProblem::NoSuchThread { .. } | ThreadProblem::Ended { .. }) => {}
                Err(problem) => {
                    println!("thread: {problem}");
                    return;
                }
            }
        }
    }
}
