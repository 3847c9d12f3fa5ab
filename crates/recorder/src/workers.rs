//! Threads that do jobs, so that reading the sampler's output never waits for one.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// The threads and their queues. When dropped, jobs that nobody has begun are left, and the others waited for.
pub(crate) struct Workers<Job, Done> {
    jobs: Option<Sender<Job>>,
    waiting: Receiver<Job>,
    done: Receiver<Done>,
    /// Readable when there are results.
    ready: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    unfinished: usize,
}

impl<Job: Send + 'static, Done: Send + 'static> Workers<Job, Done> {
    /// Starts so many threads, `NAME-0` and so on. `make` is called in each, with its number, for what does the jobs.
    pub(crate) fn start<Worker: FnMut(Job) -> Done>(
        name: &str,
        threads: usize,
        make: impl Fn(usize) -> Worker + Clone + Send + 'static,
    ) -> std::io::Result<Workers<Job, Done>> {
        let (jobs, waiting) = unbounded::<Job>();
        let (results, done) = unbounded();
        let ready = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let mut workers = Workers { jobs: Some(jobs), waiting, done, ready, threads: Vec::new(), unfinished: 0 };
        for number in 0..threads.max(1) {
            let (todo, results, ready) = (workers.waiting.clone(), results.clone(), workers.ready.clone());
            let make = make.clone();
            let work = move || {
                let mut worker = make(number);
                for job in todo {
                    if results.send(worker(job)).is_err() {
                        break;
                    }
                    // the counter cannot overflow: one is added per job
                    let _ = rustix::io::write(&*ready, &1u64.to_ne_bytes());
                }
            };
            let thread = std::thread::Builder::new().name(format!("{name}-{number}")).spawn(work)?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Gives a job; false if nobody does any more.
    pub(crate) fn ask(&mut self, job: Job) -> bool {
        let is_taken = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        self.unfinished += usize::from(is_taken);
        is_taken
    }

    /// Becomes readable when there are results.
    pub(crate) fn ready(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// Whether jobs were given whose results nobody has taken.
    pub(crate) fn busy(&self) -> bool {
        self.unfinished > 0
    }

    /// All results that are there.
    pub(crate) fn take(&mut self) -> Vec<Done> {
        let mut count = [0; 8];
        // before the results are looked at: what comes later is signalled again
        let _ = rustix::io::read(&*self.ready, &mut count);
        let done: Vec<Done> = self.done.try_iter().collect();
        self.unfinished -= done.len();
        done
    }
}

impl<Job, Done> Drop for Workers<Job, Done> {
    fn drop(&mut self) {
        self.jobs = None;
        while self.waiting.try_recv().is_ok() {}
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_done_once_and_signalled() {
        let mut workers = Workers::start("test", 3, |_| |job: u32| job * 2).expect("threads");
        assert!((0..100).all(|job| workers.ask(job)));
        let mut done = Vec::new();
        while workers.busy() {
            let mut ready =
                [rustix::event::PollFd::from_borrowed_fd(workers.ready.as_fd(), rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut ready, None).expect("a poll");
            done.extend(workers.take());
        }
        done.sort_unstable();
        assert_eq!(done, (0..100).map(|job| job * 2).collect::<Vec<u32>>());
        assert!(workers.take().is_empty());
    }

    #[test]
    fn what_nobody_has_begun_is_left_at_the_end() {
        let (begun, wait) = (crossbeam_channel::bounded::<()>(1), crossbeam_channel::bounded::<()>(0));
        let (tell, go) = (begun.0.clone(), wait.1.clone());
        let make = move |_| {
            let (tell, go) = (tell.clone(), go.clone());
            move |job: u32| {
                let _ = tell.try_send(());
                // ends when the test's side is gone
                let _ = go.recv();
                job
            }
        };
        let mut workers = Workers::start("test", 1, make).expect("a thread");
        assert!((0..1000).all(|job| workers.ask(job)));
        begun.1.recv().expect("the first job is begun");
        drop(wait.0);
        drop(workers);
    }
}
