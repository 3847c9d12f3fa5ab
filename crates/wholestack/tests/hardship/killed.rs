//! `kill -9` of the recorder at any moment, under load. Nobody cleans up after it but the kernel.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use aya::maps::loaded_maps;

use crate::common::bpf::{self, used_by, wait_until_no_orphans};
use crate::common::recorder::{Recorder, command, hang_guard};
use crate::common::target::{Target, all_processes, condition, is_over, wait_until_it_ran};
use crate::common::{compile, is_root, names_in, open_directory, wait_for};
use crate::storm::long;
use crate::support::build::Workshop;

/// It is killed within this time after its start, or within half as much again as it takes to begin if that is more.
const LATEST: Duration = Duration::from_millis(500);
/// Names of wholestack's maps that no other program's have.
const MAPS: [&str; 5] = ["followed", "stale", "counts_0", "counts_1", "deferred"];

/// What is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Process,
    Machine,
    Command,
}

/// A target, a load, and a command with a path that nobody else has.
struct Scene {
    _shop: Workshop,
    directory: tempfile::TempDir,
    target: Target,
    _load: Vec<Target>,
    command: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let directory = open_directory();
        let spin = compile(directory.path(), "spin");
        let command = directory.path().join("recorded-command");
        std::fs::copy(&spin, &command).expect("a copy");
        let mut target = Target::start(&spin, &[]);
        target.line();
        let shop = Workshop::new();
        let (gale, alpha) =
            (shop.c("gale", "gale.c", &[]), shop.c("alpha", "squall.c", &["-DNAME=alpha", "-DSPACE=99"]));
        let mut storm = std::process::Command::new(gale);
        storm.args([&hang_guard(), "100"]).arg(alpha).env("GATE", "0");
        let mut busy = Target::start(&spin, &[]);
        busy.line();
        Scene { directory, target, _load: vec![Target::of(storm), busy], command, _shop: shop }
    }

    fn start(&self, mode: Mode, out: &Path, duration: &str) -> Recorder {
        let pid = self.target.pid().to_string();
        let path = self.command.to_str().expect("text");
        let mut arguments = vec!["record", "-o", "out.html", "-o", "out.folded", "-d", duration];
        match mode {
            Mode::Process => arguments.extend(["-p", &pid]),
            Mode::Machine => {}
            Mode::Command => arguments.extend(["--", path]),
        }
        let mut recorder = command(out, &arguments);
        recorder.env("TMPDIR", out);
        Recorder::start(recorder)
    }

    /// How long a recording of the machine takes to begin here and now.
    fn time_to_begin(&self) -> Duration {
        let out = open_directory();
        let started = Instant::now();
        let mut recorder = self.start(Mode::Machine, out.path(), &hang_guard());
        assert!(recorder.wait_until_sampling());
        let took = started.elapsed();
        recorder.signal(libc::SIGKILL);
        recorder.wait();
        took
    }

    /// Processes that are the command or wait to become it.
    fn commands(&self) -> Vec<u32> {
        let path = self.command.to_str().expect("text").as_bytes();
        let mentions = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == path)
        };
        all_processes().into_iter().filter(mentions).collect()
    }

    /// Whether a process has become the command.
    fn runs(&self, pid: u32) -> bool {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == self.command)
    }

    /// Nobody waits for the dead recorder; a command that runs is free, and is ended here.
    fn end_commands(&self) -> bool {
        wait_for("launchers end", || self.commands().into_iter().all(|pid| is_over(pid) || self.runs(pid)));
        let running: Vec<u32> = self.commands().into_iter().filter(|pid| self.runs(*pid) && !is_over(*pid)).collect();
        for pid in &running {
            condition(*pid).assert_free();
            wait_until_it_ran(*pid);
            // SAFETY: a process that this test had started through a recorder.
            unsafe { libc::kill(*pid as i32, libc::SIGKILL) };
            wait_for("the command ends", || is_over(*pid));
        }
        !running.is_empty()
    }
}

/// Waits until every map of wholestack's is used by some process.
fn wait_until_no_orphaned_maps() {
    wait_for("orphaned maps go away", || {
        let ours: BTreeSet<u32> = loaded_maps()
            .flatten()
            .filter(|map| map.name_as_str().is_some_and(|name| MAPS.contains(&name)))
            .map(|map| map.id())
            .collect();
        let held: BTreeSet<u32> = all_processes().iter().flat_map(|pid| used_by(*pid).maps).collect();
        ours.is_subset(&held)
    });
}

/// Everybody who is traced by somebody, or stopped.
fn held_up() -> BTreeSet<u32> {
    let held = |pid: &u32| {
        let field = |name: &str| crate::common::target::status_field(*pid, name).unwrap_or_default();
        field("State").starts_with(['T', 't']) || !["0", ""].contains(&field("TracerPid").as_str())
    };
    all_processes().into_iter().filter(held).collect()
}

/// Where the noise begins: a new one each time, which is printed.
fn seed() -> u64 {
    let given = std::env::var("WHOLESTACK_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    given.unwrap_or(now)
}

#[test]
fn at_random_moments_under_load() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let before = condition(scene.target.pid());
    before.assert_free();
    let (seed, kills) = (seed(), if long() { 100 } else { 30 });
    let latest = LATEST.max(scene.time_to_begin().mul_f64(1.5));
    println!("LIVE kill -9: WHOLESTACK_SEED={seed}, {kills} times within {latest:?}");
    let mut noise = seed | 1;
    let (mut sampling, mut commands) = (0, 0);
    for kill in 0..kills {
        let mode = [Mode::Process, Mode::Machine, Mode::Command][kill % 3];
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let delay = latest.mul_f64((noise >> 40) as f64 / (1u64 << 24) as f64);
        let out = open_directory();
        let held_up_before = held_up();
        let recorder = scene.start(mode, out.path(), &hang_guard());
        let pid = recorder.pid();
        std::thread::sleep(delay);
        sampling += u32::from(bpf::samples(pid));
        recorder.signal(libc::SIGKILL);
        assert_eq!(recorder.wait().signal, Some(libc::SIGKILL), "{mode:?} after {delay:?}, kill {kill}");
        commands += u32::from(scene.end_commands());
        assert!(names_in(out.path()).is_empty(), "{:?} {mode:?} after {delay:?}", names_in(out.path()));
        wait_until_no_orphans();
        wait_until_no_orphaned_maps();
        scene.target.assert_unharmed(&before);
        let by_us: Vec<u32> = held_up()
            .difference(&held_up_before)
            .copied()
            .filter(|held| crate::common::target::status_field(*held, "TracerPid") == Some(pid.to_string()))
            .collect();
        assert!(by_us.is_empty(), "traced: {by_us:?}");
        assert!(bpf::descriptors_of(scene.target.pid()).is_empty());
    }
    println!("LIVE kill -9: {sampling} of {kills} while sampling, {commands} commands ran");
    for mode in [Mode::Process, Mode::Machine, Mode::Command] {
        let out = open_directory();
        scene.start(mode, out.path(), "300ms").wait().expect(0).told("wrote out.folded");
        scene.end_commands();
        assert_eq!(names_in(out.path()), ["out.folded", "out.html"]);
        let text = std::fs::read_to_string(out.path().join("out.folded")).expect("a profile");
        assert!(text.contains("main;outer;inner"), "{mode:?}:\n{text}");
    }
    wait_until_it_ran(scene.target.pid());
    let left = names_in(scene.directory.path());
    assert_eq!(left, ["recorded-command", "spin"]);
}
