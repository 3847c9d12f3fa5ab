//! The programs whose stacks are compared when none is named, and how a program is run.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};

/// A program to be recorded.
pub(super) struct Program {
    /// What it is.
    pub(super) name: &'static str,
    /// A shell script; `$W` is the directory of the workloads, `$D` one to write into.
    script: &'static str,
    /// Programs that it needs.
    needs: &'static [&'static str],
}

/// Compiles workload `$1` with the options behind it and runs it for its budget of CPU time.
const COMPILED: &str = r#"make() { source=$1; shift; "$@" -I "$W" -o "$D/program" "$W/$source"; }; export GATE=0; "#;

/// All of them: workloads whose structure is known, and programs that people run.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "C, no frame pointers",
        script: r#"make split.c cc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls && "$D/program" 3"#,
        needs: &["cc"],
    },
    Program {
        name: "C, signal handlers",
        script: r#"make signals.c cc -O2 -fomit-frame-pointer && "$D/program" 3"#,
        needs: &["cc"],
    },
    Program {
        name: "C, 4 MB frames, alloca, realignment",
        script: r#"make frames.c cc -O2 -fomit-frame-pointer && "$D/program" 3"#,
        needs: &["cc"],
    },
    Program {
        name: "C++, exceptions",
        script: r#"make exceptions.cpp c++ -O2 -fomit-frame-pointer && "$D/program" 3"#,
        needs: &["c++"],
    },
    Program {
        name: "Rust, generics",
        script: r#"rustc --edition 2024 -O -o "$D/program" "$W/generics.rs" && "$D/program" 3"#,
        needs: &["rustc"],
    },
    Program {
        name: "gcc",
        script: r#"awk -v functions=200 -f "$W/large.awk" > "$D/large.c" && cc -O2 -c -o "$D/large.o" "$D/large.c""#,
        needs: &["cc", "awk"],
    },
    Program {
        name: "rustc (lld, BOLT)",
        script: r#"rustc --edition 2024 -C opt-level=2 -o "$D/many" "$W/many.rs""#,
        needs: &["rustc"],
    },
    Program { name: "python3", script: r#"python3 "$W/mix.py" 100"#, needs: &["python3"] },
    Program { name: "sqlite3", script: r#"sqlite3 :memory: ".read $W/mix.sql" > /dev/null"#, needs: &["sqlite3"] },
    Program {
        name: "perl",
        script: r#"perl -e 'my %h; for my $i (1..900000) { my $s = "k" . ($i * 7919 % 100003); $h{$s} .= reverse $s if $s =~ /(\d)\1/; } print join(",", sort keys %h) > 0'"#,
        needs: &["perl"],
    },
    Program {
        name: "find, grep, sort",
        script: "for i in 1 2; do grep -rhE '(foo|[a-z]+_init)[0-9a-z]+_t *' /usr/include | sort | tail -n 1; done; find / -xdev -name 'x*y' | wc -l",
        needs: &["grep", "sort", "find"],
    },
    Program {
        name: "openssl",
        script: "openssl speed -seconds 1 sha256 rsa2048 > /dev/null 2>&1",
        needs: &["openssl"],
    },
    Program {
        name: "tar, xz, gzip",
        script: "tar -cf \"$D/a.tar\" -C /usr include/linux include/asm-generic && gzip -9 < \"$D/a.tar\" | wc -c && xz -2 -T1 < \"$D/a.tar\" | wc -c",
        needs: &["tar", "xz", "gzip"],
    },
];

impl Program {
    /// What it needs and is not there.
    pub(super) fn lacks(&self) -> Vec<&'static str> {
        self.needs.iter().copied().filter(|need| !in_path(need)).collect()
    }

    /// Starts it; it waits for [`Started::go`].
    pub(super) fn start(&self, workloads: &Path, directory: &Path) -> anyhow::Result<Started> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("read -r go; {COMPILED}{}", self.script));
        command.env("W", workloads).env("D", directory);
        Started::by(command)
    }
}

/// Starts a command of the user's.
pub(super) fn start(command: &[OsString]) -> anyhow::Result<Started> {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"read -r go; exec "$@""#, "sh"]).args(command);
    Started::by(shell)
}

/// A process group that waits for its first line of input.
pub(super) struct Started {
    child: Child,
    gate: ChildStdin,
}

impl Started {
    fn by(mut command: Command) -> anyhow::Result<Started> {
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let mut child = command.spawn().context("sh does not start")?;
        let gate = child.stdin.take().context("no pipe")?;
        Ok(Started { child, gate })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn go(&mut self) -> std::io::Result<()> {
        self.gate.write_all(b"go\n")
    }

    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }
}

impl Drop for Started {
    /// Leaves nothing running.
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            // all of it may have ended already
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Where the sources of the workloads are: in the checkout that this program was built of.
pub(super) fn workloads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wholestack/tests/workloads")
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
