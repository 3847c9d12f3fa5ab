//! Running other programs, and saying what went wrong.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tree;

/// The cargo that runs this program, in this checkout.
pub fn cargo(subcommand: &str) -> Command {
    cargo_at(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), subcommand)
}

/// Another cargo, in this checkout.
pub fn cargo_at(cargo: impl AsRef<OsStr>, subcommand: &str) -> Command {
    let mut command = Command::new(cargo);
    command.arg(subcommand).current_dir(tree::root());
    // what cargo told this program about its own package is not true of others
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME" {
            command.env_remove(&*name);
        }
    }
    command
}

/// Runs a command whose output goes where ours goes; fails with what to type to see the failure again.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{} does not start", shown(command)))?;
    if !status.success() {
        bail!("{status}: {}", shown(command));
    }
    Ok(())
}

/// What a command prints to its standard output, which must be text; what it complains goes where ours goes.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{} does not start", shown(command)))?;
    if !output.status.success() {
        bail!("{}: {}", output.status, shown(command));
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} printed what is no text", shown(command)))
}

/// What a command prints, if it is there and succeeds; nothing of it is shown.
pub fn asked(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(std::process::Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}

/// The command as one would type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The program of that name in `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Whether this program runs as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_one_would_type_them() {
        let mut command = Command::new("cc");
        command.args(["-o", "a b", "it's", "", "--cfg=x=\"y\""]);
        let line = shown(&command);
        assert_eq!(line, r#"cc -o 'a b' 'it'\''s' '' '--cfg=x="y"'"#);
        let words = asked("sh", &["-c", &format!("printf '%s\n' {}", line.replacen("cc ", "", 1))]).unwrap();
        assert_eq!(words.lines().collect::<Vec<_>>(), ["-o", "a b", "it's", "", "--cfg=x=\"y\""]);
    }

    #[test]
    fn programs_are_found_in_the_path() {
        assert!(program("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(program("no-such-program-anywhere"), None);
        assert_eq!(asked("no-such-program-anywhere", &[]), None);
        assert_eq!(asked("false", &[]), None);
    }

    #[test]
    fn failures_name_the_command() {
        let error = run(Command::new("sh").args(["-c", "exit 7"])).unwrap_err();
        assert_eq!(error.to_string(), "exit status: 7: sh -c 'exit 7'");
        let error = run(&mut Command::new("no-such-program-anywhere")).unwrap_err();
        assert_eq!(error.to_string(), "no-such-program-anywhere does not start");
    }
}
