//! Threads of our own that trace. To the kernel it is a thread that traces, and its end is the end of all its tracing.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::Proc;

/// A thread's last steps take microseconds; the bound is there so that there is one.
const LAST_STEPS: Duration = Duration::from_secs(5);

/// Runs a function on a thread of its own; when this returns, nothing is traced by that thread any more.
pub(super) fn run<T: Send>(trace: impl FnOnce() -> T + Send) -> io::Result<T> {
    run_beside(trace, || ()).map(|(traced, ())| traced)
}

/// As [`run`], while the calling thread does something else.
pub(super) fn run_beside<T: Send, U>(
    trace: impl FnOnce() -> T + Send,
    beside: impl FnOnce() -> U,
) -> io::Result<(T, U)> {
    let _blocked = JobControl::block();
    let tid = OnceLock::new();
    let result = std::thread::scope(|scope| {
        let thread = Builder::new().name("tracer".to_owned()).spawn_scoped(scope, || {
            let _ = tid.set(rustix::thread::gettid());
            // sleeps of microseconds are not to be rounded up to 50
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            trace()
        })?;
        let beside = beside();
        match thread.join() {
            Ok(traced) => Ok((traced, beside)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    if let Some(tid) = tid.get() {
        wait_for_end(tid.as_raw_nonzero().get().unsigned_abs());
    }
    result
}

/// Waits until a thread of ours is gone. Joining it is not enough: the kernel says that it has ended
/// (`mm_release`) before it detaches it from what it traces (`exit_notify`, both called by `do_exit` in kernel/exit.c).
fn wait_for_end(tid: u32) {
    let path = Proc::system().root().join(format!("self/task/{tid}"));
    let begin = Instant::now();
    while path.exists() && begin.elapsed() < LAST_STEPS {
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Signals that stop a program at the terminal are kept from the calling thread, and from threads that it starts, until
/// this is dropped.
struct JobControl {
    before: libc::sigset_t,
}

impl JobControl {
    fn block() -> JobControl {
        let mut stops = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sigemptyset makes `stops` a set; pthread_sigmask fills `before`. Neither can fail with these arguments.
        unsafe {
            libc::sigemptyset(stops.as_mut_ptr());
            for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
                libc::sigaddset(stops.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, stops.as_ptr(), before.as_mut_ptr());
            JobControl { before: before.assume_init() }
        }
    }
}

impl Drop for JobControl {
    fn drop(&mut self) {
        // SAFETY: `before` is the set that was given out.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}
