//! `cargo xtask demo`: a first flame graph, of this machine while it compiles wholestack once more.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::command::{self, cargo};
use crate::install::Privilege;
use crate::tree;

/// Options of `demo`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Where the flame graph goes
    #[arg(short, long, value_name = "FILE", default_value = "flamegraph.html")]
    output: PathBuf,
}

/// Builds, records, and says where the picture is.
pub fn run(arguments: &Arguments) -> Result<()> {
    let privilege = Privilege::here().context(
        "recording the whole machine needs root: run this as root, or where sudo is installed and allowed to you",
    )?;
    let target = tree::target()?;
    let mut record = privilege.command(target.join("release/wholestack"), &[]);
    record.args(["record", "--duration", "5s", "--output"]).arg(&arguments.output);
    command::run(cargo("build").args(["--release", "--package=wholestack"]))?;
    let work = Work::start(COMPILE, &target.join("demo"))?;
    let recorded = command::run(&mut record);
    drop(work);
    recorded?;
    let path =
        arguments.output.canonicalize().with_context(|| format!("there is no {}", arguments.output.display()))?;
    println!("the flame graph of five seconds of this machine: open {} in a browser", path.display());
    Ok(())
}

/// Compiles all of wholestack with the cargo `$0` into the directory `$1`.
const COMPILE: &str = r#"rm -rf "$1"; "$0" build --quiet --offline --package=wholestack --target-dir="$1""#;

/// Something for the machine to do, so that there is something to see.
struct Work {
    shell: Child,
    directory: PathBuf,
}

impl Work {
    /// Starts a piece of work, over and over, until the end of this program or of this value, whichever comes first.
    fn start(work: &str, directory: &Path) -> Result<Work> {
        let cargo = cargo("build").get_program().to_owned();
        let script = format!("while :; do {work}; done & read -r _; kill 0");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).arg(cargo).arg(directory).current_dir(tree::root());
        // its own group, so that it can end all that it started; it does so when its standard input ends
        shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = shell.spawn().context("sh does not start")?;
        Ok(Work { shell, directory: directory.to_owned() })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
        // compilers that have not ended yet may still write: what they leave, the next demo takes away
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn until(condition: impl Fn() -> bool) {
        while !condition() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_work_and_what_it_started_ends_with_its_value() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("demo");
        let work = Work::start(r#"mkdir -p "$1"; sleep 1000 & echo $! > "$1/new"; mv "$1/new" "$1/pid"; wait"#, &place)
            .unwrap();
        until(|| place.join("pid").exists());
        let sleeper = std::fs::read_to_string(place.join("pid")).unwrap();
        let sleeper = Path::new("/proc").join(sleeper.trim());
        assert!(sleeper.exists());
        drop(work);
        // gone, or dead and not yet reaped by whoever inherited it
        until(|| std::fs::read_to_string(sleeper.join("stat")).map_or(true, |stat| stat.contains(") Z ")));
        assert!(!place.exists());
    }
}
