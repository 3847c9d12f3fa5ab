//! Stacks of running interpreters, unwound by a debugger: as many frames lie in the main function as the program has eval loops.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use python::Version;
use python::eval_loop::{Piece, PieceKind, find};
use python::file::PythonFile;

use crate::interpreters::{Interpreter, all};

/// Times that C code calls Python again.
const CALLBACKS: usize = 5;
/// Calls from Python to Python, between those from C; then waits. It prints how many Python frames there are then.
const PROGRAM: &str = "
import sys
def wait():
    frame, count = sys._getframe(), 0
    while frame:
        frame, count = frame.f_back, count + 1
    print(count, flush=True)
    sys.stdin.readline()
def plain(depth, left):
    if depth: plain(depth - 1, left)
    elif left: list(map(start, [left - 1]))
    else: wait()
def start(left): plain(3, left)
plain(2, 5)
";

struct Target {
    child: Child,
    /// It ends when this is closed.
    _input: Option<ChildStdin>,
    python_frames: usize,
}

impl Target {
    fn start(interpreter: &Interpreter) -> Option<Target> {
        let mut command = interpreter.place.command();
        let mut child = command.args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut line = String::new();
        let input = child.stdin.take();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        Some(Target { child, _input: input, python_frames: line.trim().parse().ok()? })
    }

    /// The pcs of its frames, innermost first: where the calls are.
    fn stack(&self, program: &Path, root: &Path) -> Option<Vec<u64>> {
        let output = Command::new("gdb")
            .arg(program)
            .args(["-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"])
            .args(["-iex", &format!("set sysroot {}", root.display())])
            .args(["-p", &self.child.id().to_string(), "-ex", "set print frame-arguments none", "-ex", "bt"])
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let addresses = text.lines().filter(|line| line.starts_with('#')).filter_map(|line| {
            let word = line.split_whitespace().nth(1)?.strip_prefix("0x")?;
            u64::from_str_radix(word, 16).ok()
        });
        let call = |(index, pc): (usize, u64)| if index == 0 { pc } else { pc.wrapping_sub(1) };
        Some(addresses.enumerate().map(call).collect())
    }

    /// Its executable mappings.
    fn mappings(&self) -> Vec<(u64, u64, u64, PathBuf)> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.child.id())).expect("maps");
        let executable = maps.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (addresses, rights, offset) = (words.next()?, words.next()?, words.next()?);
            let (begin, end) = addresses.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            let path = PathBuf::from(words.nth(2)?);
            rights.contains('x').then_some((number(begin)?, number(end)?, number(offset)?, path))
        });
        executable.collect()
    }

    /// The kinds of the pieces that the frames are in, innermost first.
    fn kinds(&self, stack: &[u64]) -> Vec<Option<PieceKind>> {
        let mappings = self.mappings();
        let mut loops: HashMap<&Path, Vec<Piece>> = HashMap::new();
        for (.., path) in &mappings {
            loops.entry(path).or_insert_with(|| {
                let data = std::fs::read(path).unwrap_or_default();
                PythonFile::parse(&data).ok().and_then(|file| find(&file).ok()).unwrap_or_default()
            });
        }
        let kind = |pc: &u64| {
            let (begin, _, offset, path) = mappings.iter().find(|(begin, end, ..)| (begin..end).contains(&pc))?;
            let place = pc - begin + offset;
            loops[path.as_path()].iter().find(|piece| (piece.begin..piece.end).contains(&place)).map(|piece| piece.kind)
        };
        stack.iter().map(kind).collect()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn running_interpreters() {
    if Command::new("gdb").arg("--version").output().is_err() {
        return println!("SKIPPED: no gdb");
    }
    let mut seen = 0;
    for interpreter in all() {
        let name = interpreter.place.file.display();
        let target = Target::start(&interpreter).unwrap_or_else(|| panic!("{name} does not run"));
        let is_root = |tree: &&PathBuf| tree.join("usr/bin").is_dir();
        let root = interpreter.place.tree.as_ref().filter(is_root).map_or(Path::new("/"), PathBuf::as_path);
        let stack = target.stack(&interpreter.place.file, root).unwrap_or_default();
        if stack.len() < CALLBACKS {
            println!("SKIPPED: gdb gives no stack of {name}");
            continue;
        }
        let kinds = target.kinds(&stack);
        let count = |kind| kinds.iter().filter(|found| **found == Some(kind)).count();
        let (main, parts) = (count(PieceKind::Main), count(PieceKind::Part));
        println!("{name}: {} frames, {main} of the main function, {parts} of parts", stack.len());
        // before 3.11 every Python frame has an eval loop; since then only calls from C have
        let has_own = interpreter.version < Version::release(3, 11, 0);
        assert_eq!(main, if has_own { target.python_frames } else { CALLBACKS + 1 }, "{name}: {kinds:?}");
        // a handler is called by the main function
        assert!(parts == 0 || parts == main, "{name}: {kinds:?}");
        if parts != 0 {
            let pairs = kinds.windows(2).filter(|pair| **pair == [Some(PieceKind::Part), Some(PieceKind::Main)]);
            assert_eq!(pairs.count(), main, "{name}: {kinds:?}");
        }
        seen += 1;
    }
    println!("{seen} interpreters");
    assert!(seen > 0);
}
