//! Storms of short processes: four programs, one of them static, each with functions of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::storm::maps::wait_until_forgotten;
use crate::storm::{Watched, anchor};
use crate::support::build::Workshop;
use crate::support::folded::{End, Stack};
use crate::support::judge::{Judge, list};
use crate::support::needs;
use crate::support::record::Recorded;
use crate::support::workload::{Truth, Workload};

/// Names of the programs, each with the size of its large frame.
const PROGRAMS: [(&str, &str); 4] = [("alpha", "100"), ("beta", "3000"), ("gamma", "7000"), ("delta", "900")];
/// Share of the samples that a storm may lose.
const LOST: f64 = 0.01;
/// The same where a whole machine is recorded, and whatever else it does takes part.
const LOST_ON_A_BUSY_MACHINE: f64 = 0.9;
/// Least share of whole chains.
const WHOLE: f64 = 0.95;
/// Processes a second; as many as there can be where that is fewer.
const RATE: &str = "500";
/// Bytes for each process that the recorder keeps to its end: its names, and its threads with their counts.
const KEPT: u64 = 1024;

struct Storm {
    _shop: Workshop,
    command: Vec<OsString>,
}

impl Storm {
    /// `gale` for some seconds, with programs that nobody has seen yet.
    fn new(seconds: &str, rate: &str) -> Storm {
        Storm::with(seconds, rate, &[], &["delta"])
    }

    /// The same, the starter with more options, and these programs static.
    fn with(seconds: &str, rate: &str, options: &[&str], fixed: &[&str]) -> Storm {
        let shop = Workshop::new();
        let gale = shop.c("gale", "gale.c", options);
        let mut command: Vec<OsString> = vec![gale.into(), seconds.into(), rate.into()];
        for (name, space) in PROGRAMS {
            let (name_option, space) = (format!("-DNAME={name}"), format!("-DSPACE={space}"));
            let mut options = vec![name_option.as_str(), space.as_str()];
            if fixed.contains(&name) {
                options.extend(["-static", "-no-pie"]);
            }
            command.push(shop.c(name, "squall.c", &options).into());
        }
        Storm { _shop: shop, command }
    }
}

/// The chain of work of one of the programs, if it is what it has to be.
fn chain(program: &str, stack: &Stack) -> Option<String> {
    if stack.end() != End::Whole {
        return None;
    }
    let Some(frames) = stack.from("main") else { return Some(String::new()) };
    let own = |part: &str| format!("{program}_{part}");
    if stack.parts[1] == "gale" {
        // between fork and exec: still the other program
        return (!frames.iter().any(|frame| frame.starts_with(&own("")))).then(String::new);
    }
    match frames.as_slice() {
        ["main", work, leaf] if *work == own("work") => {
            ["sixty", "thirty", "ten"].map(own).contains(&(*leaf).to_owned()).then(|| (*leaf).to_owned())
        }
        // a tick before or after the leaf
        ["main"] => Some(String::new()),
        ["main", work] => (*work == own("work")).then(String::new),
        _ => None,
    }
}

/// Every program by itself, then all of it by its CPU time. Of all samples, such a share may be lost.
fn judge(recorded: &Recorded, truth: &Truth, what: &str, frequency: u32, lost: f64) {
    let mut of_storm = recorded.of("gale");
    for (program, _) in PROGRAMS {
        let stacks = recorded.of(program);
        of_storm.extend(&stacks);
        let mut split = truth.clone();
        let share = |part: &str, amount: f64| (format!("{program}_{part}"), amount);
        split.shares = BTreeMap::from([share("sixty", 6.0), share("thirty", 3.0), share("ten", 1.0)]);
        let judge = Judge::among(recorded, stacks, &format!("{what}: {program}"), frequency);
        judge
            .losing_at_most(lost)
            .root_at_least(WHOLE)
            .chain_at_least(WHOLE)
            .chains(&split, |stack| chain(program, stack))
            .end();
    }
    let cpu = truth.number("children_s") + truth.cpu;
    let whole = |stack: &Stack| (stack.end() == End::Whole).then(String::new);
    let judge = Judge::among(recorded, of_storm, &format!("{what}: everything"), frequency);
    judge
        .losing_at_most(lost)
        .root_at_least(WHOLE)
        .chain_at_least(WHOLE)
        .samples_for(cpu)
        .chains(&Truth::default(), whole)
        .end();
    println!("LIVE {what}: {} processes, {} a second, {cpu:.2} s", truth.number("count"), truth.number("rate"));
}

/// 20 seconds of it, and not a table in the cache: at its end the maps have none of its processes, and the recorder has
/// not grown but by what it has to tell.
#[test]
fn a_long_storm_with_a_cold_cache() {
    needs!("cc", "unshare", "mount");
    let storm = Storm::new("20", RATE);
    let mut gale = Workload::start(&storm.command);
    // its own, empty cache
    let empty =
        "mkdir -p /var/cache/wholestack && mount -t tmpfs -o mode=700 none /var/cache/wholestack && exec \"$@\"";
    let anchor = anchor();
    let pids: Vec<OsString> =
        [gale.pid(), anchor.pid()].iter().flat_map(|pid| ["-p".into(), pid.to_string().into()]).collect();
    let watched = Watched::start(499, &["unshare", "--mount", "sh", "-c", empty, "sh"], &pids);
    gale.go();
    std::thread::sleep(Duration::from_secs(7));
    let first_third = watched.memory("VmRSS");
    let truth = gale.done();
    let end = watched.memory("VmRSS");
    gale.end();
    wait_until_forgotten(watched.pid());
    let peak = watched.memory("VmHWM");
    let recorded = watched.stop();
    judge(&recorded, &truth, "storm, cold", 499, LOST);
    let processes = truth.number("count") as u64;
    println!(
        "LIVE storm, cold: {first_third} bytes after a third, {end} at the end, {peak} at most, {processes} processes"
    );
    assert!(end <= first_third + KEPT * processes, "{first_third} bytes after a third, {end} at the end");
}

/// Whatever else the machine does: what is lost is counted.
#[test]
fn on_a_whole_machine() {
    needs!("cc");
    let storm = Storm::new("4", RATE);
    let mut gale = Workload::start(&storm.command);
    let watched = Watched::machine(499);
    gale.go();
    let truth = gale.done();
    gale.end();
    wait_until_forgotten(watched.pid());
    let recorded = watched.stop();
    judge(&recorded, &truth, "storm, whole machine", 499, LOST_ON_A_BUSY_MACHINE);
}

/// The same programs twice, as a command: the second time, their tables and those of their libraries are there.
#[test]
fn a_command_with_a_cold_and_a_warm_cache() {
    needs!("cc");
    let storm = Storm::new("5", RATE);
    for what in ["storm, new programs", "storm, warm"] {
        let watched = Watched::command(999, &storm.command);
        let recorded = watched.finish();
        judge(&recorded, &Truth::parse(&recorded.stdout), what, 999, LOST);
    }
}

/// All at the same addresses, the one that starts them, too: between fork and exec a child has the starter's code where it
/// has its own a moment later.
#[test]
fn all_at_one_address() {
    needs!("cc");
    let storm = Storm::with("5", RATE, &["-static", "-no-pie"], &["alpha", "beta", "gamma", "delta"]);
    let recorded = Watched::command(999, &storm.command).finish();
    let own = |frame: &str, program: &str| frame.strip_prefix(program).is_some_and(|rest| rest.starts_with('_'));
    let starters = ["reap", "start", "kit_begin", "kit_end", "__fork", "_Fork", "fork", "execl", "__libc_fork"];
    for (program, _) in PROGRAMS {
        let wrong = |stack: &&Stack| {
            let others = PROGRAMS.iter().filter(|(other, _)| *other != program || stack.parts[1] == "gale");
            let of_another = |frame: &str| others.clone().any(|(other, _)| own(frame, other));
            let of_starter =
                |frame: &str| stack.parts[1] != "gale" && (starters.contains(&frame) || frame.ends_with(" in gale]"));
            stack.user().iter().any(|frame| of_another(frame) || of_starter(frame))
        };
        let wrong: Vec<&Stack> = recorded.of(program).into_iter().filter(wrong).collect();
        assert!(wrong.is_empty(), "frames of another program in {program}:\n{}", list(&wrong));
    }
    judge(&recorded, &Truth::parse(&recorded.stdout), "storm, one address", 999, LOST);
}

/// As many as the machine can, with all its CPUs busy besides.
#[test]
fn as_many_as_there_can_be() {
    needs!("cc");
    let storm = Storm::new("4", "100000");
    let mut gale = Workload::start(&storm.command);
    let anchor = anchor();
    let watched = Watched::processes(997, &[gale.pid(), anchor.pid()]);
    gale.go();
    let truth = gale.done();
    gale.end();
    wait_until_forgotten(watched.pid());
    let recorded = watched.stop();
    judge(&recorded, &truth, "storm, at most", 997, LOST);
}

/// Programs that take each other's place in one process, without a fork between them.
#[test]
fn one_process_that_becomes_others() {
    needs!("cc", "sh");
    let storm = Storm::new("1", "1");
    let programs: Vec<PathBuf> = storm.command[3..].iter().map(PathBuf::from).collect();
    let script = "i=0; while [ $i -lt 300 ]; do for p; do ( exec \"$p\" ); done; i=$((i+1)); done";
    let mut command: Vec<OsString> = vec!["sh".into(), "-c".into(), script.into(), "sh".into()];
    command.extend(programs.iter().map(OsString::from));
    let recorded = Watched::command(997, &command).finish();
    for (program, _) in PROGRAMS {
        let stacks = recorded.of(program);
        let judge = Judge::among(&recorded, stacks, &format!("exec: {program}"), 997);
        judge.chains(&Truth::default(), |stack| chain(program, stack)).end();
    }
}
