//! The threads of a process, as far as a proof needs them.

use processes::thread_pointer::of_threads;
use processes::{Proc, namespaces};

use crate::prove::{Effort, Thread};

/// Threads whose thread pointers are asked for when they are needed: each is stopped for that.
#[derive(Debug)]
pub struct Threads {
    waiting: std::vec::IntoIter<u32>,
    known: Vec<Thread>,
    effort: Effort,
}

impl Threads {
    /// These, or the first of them, as many as the effort allows.
    pub fn new(mut tids: Vec<u32>, effort: Effort) -> Threads {
        tids.truncate(effort.most_threads);
        Threads { waiting: tids.into_iter(), known: Vec::new(), effort }
    }

    /// Those of a process, the first one at first. None if it is gone.
    pub fn of_process(pid: u32, effort: Effort) -> Threads {
        let mut tids = Proc::system().tids(pid).unwrap_or_default();
        tids.sort_unstable_by_key(|tid| (*tid != pid, *tid));
        Threads::new(tids, effort)
    }

    pub(super) fn effort(&self) -> &Effort {
        &self.effort
    }

    /// Those whose thread pointers are known; some, if any can be.
    pub(super) fn known(&mut self) -> &[Thread] {
        if self.known.is_empty() {
            self.ask_more();
        }
        &self.known
    }

    /// Asks some more; `false` if there are none.
    pub(super) fn ask_more(&mut self) -> bool {
        let tids: Vec<u32> = self.waiting.by_ref().take(self.effort.threads).collect();
        let proc = Proc::system();
        let looks = of_threads(&tids, self.effort.patience);
        self.known.extend(tids.iter().zip(looks).filter_map(|(tid, looked)| {
            Some(Thread {
                tid: *tid,
                native: namespaces::namespace_pids(&proc, *tid).ok().and_then(|ids| ids.last().copied()),
                thread_pointer: looked.ok()?.registers.thread_pointer,
            })
        }));
        if self.known.is_empty() {
            self.waiting = Vec::new().into_iter();
        }
        !tids.is_empty()
    }
}
