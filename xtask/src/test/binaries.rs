//! The tests as programs: built by cargo as whoever we are, run as whom they need.
//!
//! Run by cargo, tests that need root would leave root's files in the target directory, and tests of one package would
//! be built with other features than with the whole workspace.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::{cargo, shown};
use crate::install::Privilege;

/// Packages whose tests record this machine, and so need root.
const LIVE: &[&str] = &["wholestack", "wholestack-recorder", "wholestack-processes", "wholestack-verify"];
/// Packages whose tests would disturb one another: they count what is lost and what is left.
const ALONE: &[&str] = &["wholestack", "wholestack-verify"];

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub struct Binary {
    /// The package that it tests.
    pub package: String,
    /// The target in that package.
    pub target: String,
    path: PathBuf,
    directory: PathBuf,
}

/// Builds the tests of the packages, or of all.
pub fn build(packages: &[String]) -> Result<Vec<Binary>> {
    let mut command = cargo("test");
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    if packages.is_empty() {
        command.arg("--workspace");
    }
    command.args(packages.iter().map(|package| format!("--package={package}")));
    let child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("{} does not start", shown(&command)))?;
    let output = child.wait_with_output().with_context(|| shown(&command))?;
    if !output.status.success() {
        bail!("{}: {}", output.status, shown(&command));
    }
    let mut binaries: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().filter_map(binary).collect();
    // the slow ones, which record, come last
    binaries.sort_by_key(|binary| (LIVE.contains(&&*binary.package), binary.package.clone(), binary.target.clone()));
    Ok(binaries)
}

/// The test program that a message of cargo tells of.
fn binary(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    Some(Binary {
        package: package(message["package_id"].as_str()?)?,
        target: message["target"]["name"].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
        directory: manifest.parent()?.to_owned(),
    })
}

/// The name in `path+file:///home/me/wholestack/xtask#0.1.0` or `path+file:///home/me/crates/abi#wholestack-abi@0.1.0`.
fn package(id: &str) -> Option<String> {
    let (source, fragment) = id.split_once('#')?;
    let name = match fragment.split_once('@') {
        Some((name, _)) => name,
        None => source.rsplit('/').next()?,
    };
    Some(name.to_owned())
}

impl Display for Binary {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.package, self.target)
    }
}

impl Binary {
    /// Runs it, as root with the variables of `required` if it records and that is possible, so that it shows what its
    /// tests print.
    pub fn command(&self, privilege: Option<Privilege>, required: &[(&str, &str)]) -> Command {
        let wanted = |privilege: &Privilege| *privilege == Privilege::Root || LIVE.contains(&&*self.package);
        let mut command = match privilege.filter(wanted) {
            Some(privilege) => privilege.command(&self.path, required),
            None => Command::new(&self.path),
        };
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory).arg("--show-output");
        if ALONE.contains(&&*self.package) {
            command.arg("--test-threads=1");
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_in_both_ways() {
        assert_eq!(package("path+file:///home/me/wholestack/xtask#0.1.0").as_deref(), Some("xtask"));
        assert_eq!(package("path+file:///home/me/crates/abi#wholestack-abi@0.1.0").as_deref(), Some("wholestack-abi"));
        assert_eq!(package("wholestack 0.1.0"), None);
    }

    #[test]
    fn of_all_messages_only_those_of_tests_count() {
        let message = |test: bool, executable: Value| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": "path+file:///w/crates/abi#wholestack-abi@0.1.0",
                "manifest_path": "/w/crates/abi/Cargo.toml",
                "target": { "name": "layout", "kind": ["test"] },
                "profile": { "test": test },
                "executable": executable,
            })
            .to_string()
        };
        let expected = Binary {
            package: "wholestack-abi".to_owned(),
            target: "layout".to_owned(),
            path: "/t/layout-1".into(),
            directory: "/w/crates/abi".into(),
        };
        assert_eq!(binary(&message(true, "/t/layout-1".into())), Some(expected));
        assert_eq!(binary(&message(false, "/t/layout-1".into())), None);
        assert_eq!(binary(&message(true, Value::Null)), None);
        assert_eq!(binary("{\"reason\":\"build-finished\",\"success\":true}"), None);
        assert_eq!(binary("no message"), None);
    }

    #[test]
    fn tests_that_record_run_as_root_and_one_at_a_time() {
        let of = |package: &str| Binary {
            package: package.to_owned(),
            target: "live".to_owned(),
            path: "/t/live-1".into(),
            directory: "/".into(),
        };
        let line = |package, privilege| shown(&of(package).command(privilege, &[("REQUIRE", "1")]));
        assert_eq!(line("wholestack", Some(Privilege::Root)), "/t/live-1 --show-output --test-threads=1");
        assert_eq!(line("wholestack-abi", Some(Privilege::Sudo)), "/t/live-1 --show-output");
        assert_eq!(line("wholestack-recorder", None), "/t/live-1 --show-output");
        let line = line("wholestack-recorder", Some(Privilege::Sudo));
        assert!(line.starts_with("sudo -E env ") && line.ends_with(" REQUIRE=1 /t/live-1 --show-output"), "{line}");
        let command = of("wholestack-abi").command(Some(Privilege::Root), &[("REQUIRE", "1")]);
        assert!(command.get_envs().any(|(name, _)| name == "REQUIRE"));
    }
}
