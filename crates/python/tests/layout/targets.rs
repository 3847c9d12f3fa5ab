//! Interpreters of this machine, and a program of theirs that parks threads.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use object::{Object, ObjectSegment, ObjectSymbol};
use objects::Architecture;
use python::{Memory, Unreadable, Version};

/// What this machine is.
#[cfg(target_arch = "x86_64")]
pub const HERE: Architecture = Architecture::X86_64;
#[cfg(target_arch = "aarch64")]
pub const HERE: Architecture = Architecture::Aarch64;

/// An interpreter that can be run.
pub struct Interpreter {
    /// What tells it apart.
    pub name: String,
    pub architecture: Architecture,
    command: Vec<OsString>,
}

/// All: those of Debian, those of pyenv, and those in trees of other systems, which the variable names.
pub fn interpreters() -> Vec<Interpreter> {
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".pyenv"))
    });
    let mut found = BTreeSet::new();
    let versions = pyenv.map(|root| entries(&root.join("versions"))).unwrap_or_default();
    for directory in versions.into_iter().map(|version| version.join("bin")).chain([PathBuf::from("/usr/bin")]) {
        found.extend(pythons(&directory).into_iter().filter_map(|path| path.canonicalize().ok()));
    }
    let here = found.into_iter().filter_map(|path| Interpreter::new(&path, [path.clone().into()].into()));
    here.chain(in_trees()).collect()
}

/// `WHOLESTACK_PYTHON_TREES`: directories, separated by colons, with root file systems of other Debian suites, also of other
/// architectures, or with interpreters in `bin` that find their libraries beside it.
fn in_trees() -> Vec<Interpreter> {
    let trees = std::env::var_os("WHOLESTACK_PYTHON_TREES").unwrap_or_default();
    let mut all = Vec::new();
    for tree in std::env::split_paths(&trees) {
        for path in pythons(&tree.join("usr/bin")) {
            let inside = Path::new("/usr/bin").join(path.file_name().expect("a name"));
            let command = match architecture_of(&path) {
                Some(HERE) => vec!["chroot".into(), tree.clone().into(), inside.into()],
                _ => vec!["qemu-aarch64".into(), "-L".into(), tree.clone().into(), path.clone().into()],
            };
            all.extend(Interpreter::new(&path, command));
        }
        // `bin` of a root file system is a link to `usr/bin`
        let bin = tree.join("bin");
        for path in if bin.is_symlink() { Vec::new() } else { pythons(&bin) } {
            let mut home = OsString::from("PYTHONHOME=");
            home.push(&tree);
            let mut libraries = OsString::from("LD_LIBRARY_PATH=");
            libraries.push(std::env::join_paths([&tree, &tree.join("lib")]).expect("paths"));
            all.extend(Interpreter::new(&path, vec!["env".into(), home, libraries, path.clone().into()]));
        }
    }
    all
}

impl Interpreter {
    fn new(path: &Path, command: Vec<OsString>) -> Option<Interpreter> {
        Some(Interpreter { name: path.display().to_string(), architecture: architecture_of(path)?, command })
    }
}

/// Of an ELF file: `e_machine`.
fn architecture_of(path: &Path) -> Option<Architecture> {
    let mut head = [0; 20];
    std::io::Read::read_exact(&mut std::fs::File::open(path).ok()?, &mut head).ok()?;
    Architecture::from_machine(u16::from_le_bytes([head[18], head[19]]))
}

fn pythons(directory: &Path) -> Vec<PathBuf> {
    entries(directory).into_iter().filter(|path| is_python(path) && !path.is_symlink()).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// python3.N, and what is built beside it.
fn is_python(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rest = name.strip_prefix("python3.").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    matches!(rest, Some("" | "d" | "t" | "-shared"))
}

/// A thread of the program, as it describes itself.
pub struct Thread {
    pub name: String,
    pub thread_self: u64,
    pub native: Option<u32>,
    /// Innermost first.
    pub names: Vec<String>,
}

/// The program at its end: all threads wait.
pub struct Target {
    child: Child,
    pub architecture: Architecture,
    pub version: Version,
    pub interpreters: usize,
    /// Its main thread, which waits, holds the GIL.
    pub holds: bool,
    pub threads: Vec<Thread>,
}

impl Target {
    /// Starts it; `None` if the interpreter cannot be run.
    pub fn start(interpreter: &Interpreter) -> Option<Target> {
        let mut command = Command::new(&interpreter.command[0]);
        command.args(&interpreter.command[1..]).arg("-c").arg(include_str!("threads.py"));
        let child = command.stdout(Stdio::piped()).env("PYTHONIOENCODING", "utf-8").spawn().ok()?;
        let mut target = Target {
            child,
            architecture: interpreter.architecture,
            version: Version::release(3, 0, 0),
            interpreters: 0,
            holds: false,
            threads: Vec::new(),
        };
        for line in BufReader::new(target.child.stdout.take()?).lines() {
            let value: serde_json::Value = serde_json::from_str(&line.ok()?).ok()?;
            if let Some(version) = value["version"].as_u64() {
                target.version = Version::from_hex(version as u32)?;
                target.interpreters = value["interpreters"].as_u64()? as usize;
                target.holds = value["holds"].as_bool()?;
                continue;
            }
            target.threads.push(Thread {
                name: value["thread"].as_str()?.into(),
                thread_self: value["ident"].as_u64()?,
                native: value["native"].as_u64().map(|native| native as u32),
                names: value["names"].as_array()?.iter().map(|name| name.as_str().unwrap_or_default().into()).collect(),
            });
            // the last to tell
            if value["thread"] == "main" {
                return target.waits().then_some(target);
            }
        }
        None
    }

    /// Waits until its main thread waits for a signal with the GIL, if it does: it gave it up to tell of itself. False if it ends.
    fn waits(&self) -> bool {
        // pause(2); aarch64 has none, and glibc calls ppoll(2) in its place, which has another number where it is emulated
        const WAITING: [&str; 3] = ["34", "73", "271"];
        loop {
            let Ok(call) = std::fs::read_to_string(format!("/proc/{}/syscall", self.child.id())) else { return false };
            if !self.holds || WAITING.contains(&call.split(' ').next().unwrap_or_default()) {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    pub fn memory(&self) -> Live {
        Live(self.child.id())
    }

    /// Address of a symbol of the interpreter, wherever it lies.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.child.id())).ok()?;
        let mut files = Vec::<(u64, String)>::new();
        for line in maps.lines().filter(|line| line.contains("python")) {
            let mut fields = line.split_ascii_whitespace();
            let start = u64::from_str_radix(fields.next()?.split('-').next()?, 16).ok()?;
            let (offset, path) = (fields.nth(1)?, fields.nth(2)?);
            if offset.bytes().all(|digit| digit == b'0') && !files.iter().any(|(_, file)| file == path) {
                files.push((start, path.into()));
            }
        }
        files.into_iter().find_map(|(start, path)| {
            let bytes = std::fs::read(path).ok()?;
            let file = object::File::parse(&*bytes).ok()?;
            let base = file.segments().map(|segment| segment.address() & !0xfff).min()?;
            let mut symbols = file.dynamic_symbols().chain(file.symbols());
            let symbol = symbols.find(|symbol| symbol.name() == Ok(name) && symbol.is_definition())?;
            Some(symbol.address().wrapping_sub(base).wrapping_add(start))
        })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The memory of a process.
#[derive(Clone, Copy, Debug)]
pub struct Live(u32);

impl Memory for Live {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        match processes::memory::read_memory(self.0, address, into) {
            Ok(count) if count == into.len() => Ok(()),
            _ => Err(Unreadable { address, length: into.len() }),
        }
    }
}
