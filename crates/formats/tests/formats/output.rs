//! Files that profiles are written to, with the errors of real file systems.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output as Finished};

use crate::synthetic::{self, At, Author};
use formats::{Error, Format, Output};
use profile::{Kind, Profile};

const OLD: &str = "what was there before\n";

#[test]
fn names_say_the_format() {
    for (name, format) in [
        ("a.html", Format::Html),
        ("a.b.SVG", Format::Svg),
        ("/x.svg/a.json", Format::Speedscope),
        ("a.pb.gz", Format::Pprof),
        ("a.pb", Format::Pprof),
        ("a.pprof", Format::Pprof),
        ("a.folded", Format::Folded),
        ("a.collapsed", Format::Folded),
    ] {
        assert_eq!(Format::of_path(Path::new(name)).unwrap(), format, "{name}");
    }
    for name in ["a", "a.txt", "a.gz", ".svg", "svg", "a.svg/", "a.svg.bak", "", "/", ".."] {
        let result = Format::of_path(Path::new(name));
        if name == "a.svg/" {
            // a path component with a slash behind it is still named so; that it is a directory is found later
            assert_eq!(result.unwrap(), Format::Svg);
            continue;
        }
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(name) && error.contains(".html .svg .json .pb.gz"), "{error}");
    }
}

#[test]
fn every_format_makes_a_file() {
    let directory = tempfile::tempdir().unwrap();
    for profile in [synthetic::whole(), Profile::default()] {
        for format in Format::ALL {
            let path = directory.path().join(format!("x{}", format.extensions()[0]));
            Output::create(&path).unwrap().finish(&profile).unwrap();
            let mut wanted = Vec::new();
            format.write(&profile, &mut wanted).unwrap();
            assert_eq!(fs::read(&path).unwrap(), wanted);
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), Format::ALL.len());
}

#[test]
fn what_is_there_stays_until_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.folded");
    fs::write(&path, OLD).unwrap();
    let output = Output::create(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), OLD);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    output.finish(&synthetic::friendly()).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with("gunicorn;"));
}

#[test]
fn places_that_cannot_be_written_are_found_early() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("directory.svg")).unwrap();
    fs::write(at("file"), "").unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe.svg")).status().unwrap().success());
    for (path, step) in [
        (at("missing/x.svg"), "cannot create a file in the directory: No such file or directory"),
        (at("file/x.svg"), "cannot look at the file: Not a directory"),
        (at("directory.svg"), "is a directory"),
        (at("directory.svg/"), "is a directory"),
        (at("pipe.svg"), "is not an ordinary file"),
        // not even root makes files there
        ("/proc/x.svg".into(), "cannot create a file in the directory: "),
    ] {
        let error = Output::create(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: {step}", path.display())), "{error}");
    }
    assert!(fs::metadata(at("pipe.svg")).unwrap().file_type().is_fifo());
}

#[test]
fn a_directory_that_goes_away_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.svg");
    let output = Output::create(&path).unwrap();
    drop(directory);
    let error = output.finish(&synthetic::friendly()).unwrap_err();
    assert!(matches!(&error, Error::File { path: named, .. } if *named == path), "{error}");
}

#[test]
fn a_link_is_replaced_and_its_target_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (target, link) = (directory.path().join("target"), directory.path().join("x.folded"));
    fs::write(&target, OLD).unwrap();
    symlink(&target, &link).unwrap();
    Output::create(&link).unwrap().finish(&synthetic::friendly()).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), OLD);
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
}

/// What the tests below run as a process of its own: writes [`large`] to the path in `WRITE_TO`. Among the other tests,
/// where there is no such path, it does nothing.
#[test]
fn child() {
    let Some(path) = std::env::var_os("WRITE_TO") else { return };
    let result = Output::create(Path::new(&path)).and_then(|output| output.finish(&large()));
    if let Err(error) = result {
        eprintln!("error: {error}");
        std::process::exit(3);
    }
}

/// A profile that is a few hundred kilobytes in every format.
fn large() -> Profile {
    let mut author = Author::default();
    let thread = author.task(1, "large", "large");
    for at in 0..6_000_u64 {
        let name = format!("function {:016x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let frame = author.frame(&name, Kind::Native, At::default());
        author.add(thread, &[frame], 1);
    }
    author.builder.finish()
}

/// Runs a shell script in which `"$@"` is [`child`].
fn script(wrapper: &[&str], script: &str, envs: &[(&str, &str)]) -> Finished {
    let child = std::env::current_exe().unwrap();
    let mut words = wrapper.to_vec();
    words.extend(["sh", "-c", script, "sh"]);
    Command::new(words[0])
        .args(&words[1..])
        .arg(child)
        .args(["--exact", "output::child", "--nocapture", "--quiet"])
        .envs(envs.iter().copied())
        .output()
        .unwrap()
}

fn running_as_root(directory: &Path) -> bool {
    fs::metadata(directory).unwrap().uid() == 0
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    for name in ["x.html", "x.svg", "x.json", "x.pb.gz", "x.folded"] {
        let directory = tempfile::tempdir().unwrap();
        let wrapper: &[&str] =
            if running_as_root(directory.path()) { &["unshare", "-m"] } else { &["unshare", "-m", "-r"] };
        let finished = script(
            wrapper,
            r#"set -e
            mount -t tmpfs -o size=16k tmpfs "$WHERE"
            printf '%s' "$OLD" > "$WRITE_TO"
            status=0; "$@" >&2 || status=$?
            ls -A "$WHERE"; cat "$WRITE_TO"
            exit $status"#,
            &[
                ("WHERE", directory.path().to_str().unwrap()),
                ("WRITE_TO", directory.path().join(name).to_str().unwrap()),
                ("OLD", OLD),
            ],
        );
        let (out, err) = (String::from_utf8_lossy(&finished.stdout), String::from_utf8_lossy(&finished.stderr));
        assert_eq!(finished.status.code(), Some(3), "{name}: {out} {err}");
        let message =
            format!("error: {}: cannot write: No space left on device", directory.path().join(name).display());
        assert!(err.contains(&message), "{name}: {err}");
        assert_eq!(out, format!("{name}\n{OLD}"));
    }
}

#[test]
fn the_mode_is_that_of_an_ordinary_file() {
    let directory = tempfile::tempdir().unwrap();
    for (umask, mode) in [("022", 0o644), ("027", 0o640), ("077", 0o600), ("000", 0o666)] {
        let path = directory.path().join(format!("{umask}.folded"));
        let text = format!("umask {umask}; exec \"$@\"");
        let finished = script(&["env"], &text, &[("WRITE_TO", path.to_str().unwrap())]);
        assert!(finished.status.success(), "{}", String::from_utf8_lossy(&finished.stderr));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode, "umask {umask}");
    }
}

#[test]
fn a_file_made_under_sudo_is_the_callers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.folded");
    let sudo = [("WRITE_TO", path.to_str().unwrap()), ("SUDO_UID", "12345"), ("SUDO_GID", "23456")];
    assert!(script(&["env"], "exec \"$@\"", &sudo).status.success());
    let file = fs::metadata(&path).unwrap();
    if running_as_root(directory.path()) {
        assert_eq!((file.uid(), file.gid()), (12345, 23456));
    } else {
        // without root the variables say nothing
        assert_eq!(file.uid(), fs::metadata(directory.path()).unwrap().uid());
    }
    for nonsense in [[("SUDO_UID", "-1"), ("SUDO_GID", "0")], [("SUDO_UID", "x"), ("SUDO_GID", "")]] {
        let mut envs = nonsense.to_vec();
        envs.push(("WRITE_TO", path.to_str().unwrap()));
        assert!(script(&["env"], "exec \"$@\"", &envs).status.success());
        assert_eq!(fs::metadata(&path).unwrap().uid(), fs::metadata(directory.path()).unwrap().uid());
    }
}

#[test]
fn a_dash_is_standard_output() {
    assert_eq!(Output::create(Path::new("-")).unwrap().format(), Format::Folded);
    let finished = script(&["env"], "exec \"$@\"", &[("WRITE_TO", "-")]);
    let mut wanted = Vec::new();
    formats::folded::write(&large(), &mut wanted).unwrap();
    let (out, wanted) = (String::from_utf8(finished.stdout).unwrap(), String::from_utf8(wanted).unwrap());
    assert!(finished.status.success() && out.contains(&wanted));
}
