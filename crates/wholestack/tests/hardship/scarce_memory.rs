//! A recorder in a control group that has little memory. BPF maps count, too.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::bpf::{self, wait_until_no_orphans};
use crate::common::recorder::{Ended, Recorder, program};
use crate::common::target::{Target, condition, wait_until_it_ran};
use crate::common::{compile, is_root, names_in, open_directory};

/// A control group with a limit, removed when dropped.
struct Group {
    directory: PathBuf,
}

impl Group {
    /// A new group, of either version of control groups; `None` and why if neither can limit memory here.
    fn new(bytes: u64) -> Result<Group, String> {
        let name = format!("wholestack-test-{}", std::process::id());
        let unified = Path::new("/sys/fs/cgroup");
        let has_memory = |file: &Path| {
            std::fs::read_to_string(file)
                .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory"))
        };
        let (parent, limit) = if has_memory(&unified.join("cgroup.subtree_control")) {
            (unified.to_owned(), "memory.max")
        } else if unified.join("memory/memory.limit_in_bytes").is_file() {
            (unified.join("memory"), "memory.limit_in_bytes")
        } else {
            return Err("no control group can limit memory here".to_owned());
        };
        let directory = parent.join(name);
        std::fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let group = Group { directory };
        std::fs::write(group.directory.join(limit), bytes.to_string()).map_err(|error| format!("{limit}: {error}"))?;
        // no way out; absent where there is no swap
        let _ = std::fs::write(group.directory.join("memory.swap.max"), "0");
        Ok(group)
    }

    /// Runs a program in it, by a shell that enters it first.
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.directory.join("cgroup.procs"));
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // the kernel takes a moment to see that nobody is in it any more
        for _ in 0..200 {
            if std::fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        eprintln!("{} stays", self.directory.display());
    }
}

/// Whatever there is too little memory for, it is said, or the kernel kills the recorder: in no case does it hang, or
/// does the target suffer.
#[test]
fn little_memory() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &[]);
    target.line();
    let before = condition(target.pid());
    for mib in [4_u64, 16, 32, 48, 64, 96, 128, 512] {
        let group = match Group::new(mib << 20) {
            Ok(group) => group,
            Err(reason) => return println!("SKIPPED: {reason}"),
        };
        let out = open_directory();
        let mut recorder = group.command();
        recorder.arg(program()).args(["record", "-F", "999", "-d", "500ms", "-o", "out.folded", "-p"]);
        recorder.arg(target.pid().to_string()).current_dir(out.path()).env_remove("RUST_BACKTRACE");
        let ended = Recorder::start(recorder).wait();
        println!("LIVE {mib} MiB: code {:?}, signal {:?}, {:?}", ended.code, ended.signal, ended.stderr.lines().next());
        judge(&ended, out.path());
        wait_until_no_orphans();
        target.assert_unharmed(&before);
        assert!(bpf::descriptors_of(target.pid()).is_empty());
        wait_until_it_ran(target.pid());
        drop(group);
    }
}

fn judge(ended: &Ended, out: &Path) {
    let told = &ended.stderr;
    match (ended.code, ended.signal) {
        (Some(0), _) => {
            let text = std::fs::read_to_string(out.join("out.folded")).expect("a profile");
            assert!(text.contains("main;outer;inner"), "{ended:?}\n{text}");
            return;
        }
        (Some(1 | 3), _) => assert!(told.contains("wholestack: ") && told.contains("memory"), "{ended:?}"),
        (None, Some(libc::SIGABRT)) => assert!(told.contains("memory allocation of"), "{ended:?}"),
        // the kernel's answer to a page that it promised and does not have
        (None, Some(libc::SIGKILL)) => {}
        _ => panic!("{ended:?}"),
    }
    assert!(names_in(out).is_empty(), "{:?}", names_in(out));
}
