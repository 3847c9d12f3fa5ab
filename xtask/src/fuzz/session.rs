//! Running targets.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result};

use super::build;
use super::log::{self, Crash, Statistics};
use super::places::{self, Places};
use crate::command::shown;

/// Seconds that one input may take; those that are within the limits of inputs take milliseconds.
const TIMEOUT: u32 = 20;
/// MB that a target may have; the sanitizer's own memory counts too.
const MEMORY: u32 = 4096;

/// One process of a target.
#[derive(Debug)]
pub struct Session {
    /// The target.
    pub target: String,
    /// Which of its processes.
    pub number: usize,
    /// How long it runs.
    pub time: Duration,
}

/// How a session ended.
pub struct Ended {
    /// What it says of itself.
    pub statistics: Statistics,
    /// Why it crashed, if it did.
    pub crash: Option<Crash>,
    /// Where all that it printed is.
    pub log: PathBuf,
}

/// Runs sessions, so many at once; their results are in the order of the sessions.
pub fn run_all(sessions: &[Session], places: &Places, jobs: usize) -> Result<Vec<Ended>> {
    let next = Mutex::new(sessions.iter().enumerate());
    let ended = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        loop {
            let session = next.lock().map_or(None, |mut next| next.next());
            let Some((index, session)) = session else { return Ok(()) };
            println!("{}: {} s", session.target, session.time.as_secs());
            let result = run(session, places)?;
            println!("{}: {}", session.target, result.crash.as_ref().map_or("ok", |crash| &crash.what));
            if let Ok(mut ended) = ended.lock() {
                ended.push((index, result));
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(sessions.len())).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let mut ended = ended.into_inner().unwrap_or_default();
    ended.sort_by_key(|(index, _)| *index);
    Ok(ended.into_iter().map(|(_, ended)| ended).collect())
}

fn run(session: &Session, places: &Places) -> Result<Ended> {
    let log = places.log(&session.target, session.number)?;
    let scratch = places::scratch()?;
    let mut command = command(places, &session.target)?;
    command.env("TMPDIR", scratch.path());
    // libFuzzer writes what it finds into the first directory and only reads the others
    command.arg(places.finds(&session.target)?);
    command.args(Some(places::corpus(&session.target)).filter(|corpus| corpus.is_dir()));
    match session.time.as_secs() {
        0 => command.arg("-runs=0"),
        seconds => command.arg(format!("-max_total_time={seconds}")),
    };
    let output = File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
    let errors = output.try_clone().context("a descriptor cannot be copied")?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let child = command.spawn().with_context(|| format!("{} does not start", shown(&command)))?;
    let succeeded = wait(child)?;
    let text = std::fs::read(&log).with_context(|| format!("{} cannot be read", log.display()))?;
    let text = String::from_utf8_lossy(&text);
    let crash = (!succeeded).then(|| log::crash(&text));
    Ok(Ended { statistics: log::statistics(&text), crash, log })
}

fn wait(mut child: Child) -> Result<bool> {
    Ok(child.wait().context("a target cannot be waited for")?.success())
}

/// The program of a target with the options that every run has.
pub fn command(places: &Places, target: &str) -> Result<Command> {
    let mut prefix = places.crashes(target)?.into_os_string();
    prefix.push("/");
    let mut option = std::ffi::OsString::from("-artifact_prefix=");
    option.push(prefix);
    let mut command = Command::new(places.program(&build::host()?, target));
    command.arg(option).args([
        "-print_final_stats=1",
        &format!("-timeout={TIMEOUT}"),
        &format!("-rss_limit_mb={MEMORY}"),
    ]);
    // leaks at exit are none of a library's; and looking for them needs ptrace
    command.env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1");
    Ok(command)
}
