//! Where eval loops are: in every interpreter of this machine, and in programs that compilers make in the same forms. The
//! oracles are full symbol tables, read by another reader; the same files without them; and debuggers' stacks of
//! running interpreters.

mod code_support;
#[path = "eval_loop/live.rs"]
mod live;
#[path = "eval_loop/moments.rs"]
mod moments;
#[path = "eval_loop/names.rs"]
mod names;
#[path = "eval_loop/programs.rs"]
mod programs;

mod interpreters;

use std::process::Command;

use code_support::builds;
use proptest::prelude::*;
use python::eval_loop::{EvalLoopRefusal, Piece, PieceKind, find};
use python::file::PythonFile;

/// Finds the eval loop of a file's bytes.
pub fn of(data: &[u8]) -> Result<Vec<Piece>, EvalLoopRefusal> {
    find(&PythonFile::parse(data).expect("an ELF file"))
}

/// The same file without symbols that nobody needs to run it; `None` without a tool that can do that.
pub fn stripped(data: &[u8]) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a directory");
    let (whole, less) = (directory.path().join("whole"), directory.path().join("less"));
    std::fs::write(&whole, data).expect("a file");
    let tools = ["strip", "aarch64-linux-gnu-strip", "llvm-strip", "llvm-strip-14"];
    let strips = |tool: &&str| {
        let made = Command::new(tool).arg("--strip-all").arg("-o").args([&less, &whole]).output();
        made.is_ok_and(|output| output.status.success())
    };
    tools.into_iter().find(strips)?;
    Some(std::fs::read(less).expect("what was made"))
}

/// Sorted, disjoint, within the file.
pub fn check_form(pieces: &[Piece], data: &[u8]) {
    assert!(!pieces.is_empty());
    assert!(pieces.iter().all(|piece| piece.begin < piece.end && piece.end <= data.len() as u64));
    assert!(pieces.windows(2).all(|pair| pair[0].end <= pair[1].begin), "{pieces:x?}");
    assert!(pieces.iter().any(|piece| piece.kind == PieceKind::Main));
}

#[test]
fn interpreters_of_this_machine() {
    let (mut found, mut with_names) = (0, 0);
    for build in builds() {
        let name = build.path.display();
        let Ok(file) = PythonFile::parse(&build.data) else { continue };
        let Some(identity) = file.identify() else { continue };
        let version = identity.version.map(|version| (version.major, version.minor));
        let pieces = match find(&file) {
            // it has been there since 3.6
            Err(EvalLoopRefusal::NoSymbol) if version.is_ok_and(|version| version < (3, 6)) => continue,
            pieces => pieces.unwrap_or_else(|refusal| panic!("{name}: {refusal}")),
        };
        check_form(&pieces, &build.data);
        let main: u64 =
            pieces.iter().filter(|piece| piece.kind == PieceKind::Main).map(|piece| piece.end - piece.begin).sum();
        let parts = pieces.iter().filter(|piece| piece.kind == PieceKind::Part).count();
        println!("{name}: {} pieces, {main} bytes of the main function, {parts} of parts", pieces.len());
        found += 1;
        if names::has_local(&build.data) {
            names::check(&pieces, &build.data);
            with_names += 1;
            match stripped(&build.data) {
                Some(less) => assert_eq!(of(&less).as_ref(), Ok(&pieces), "{name} without its symbols"),
                None => println!("SKIPPED: no tool strips {name}"),
            }
        }
    }
    println!("{found} files, {with_names} with full symbol tables");
    if found == 0 {
        println!("SKIPPED: no interpreter here");
    }
}

#[test]
fn users_of_an_interpreter_have_none() {
    let mut seen = 0;
    for path in ["/usr/bin/gdb", "/usr/lib/uwsgi/plugins/python311_plugin.so", "/bin/true"] {
        let Ok(data) = std::fs::read(path) else { continue };
        assert_eq!(of(&data), Err(EvalLoopRefusal::NoSymbol), "{path}");
        seen += 1;
    }
    assert!(seen > 0);
}

/// A small program with an eval loop, as a compiler makes it.
fn program() -> Vec<u8> {
    static MADE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let made = || {
        let compilers = code_support::compilers();
        compilers.first().and_then(|compiler| programs::compile(compiler, &["-O2", "-fPIC", "-shared"]))
    };
    MADE.get_or_init(|| made().unwrap_or_default()).clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn damaged_files_are_refused_or_answered(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..64),
        length in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut data = program();
        if data.is_empty() {
            return Ok(());
        }
        for (at, byte) in changes {
            let at = at.index(data.len());
            data[at] = byte;
        }
        if let Some(length) = length {
            data.truncate(length.index(data.len()));
        }
        if let Ok(file) = PythonFile::parse(&data)
            && let Ok(pieces) = find(&file)
        {
            check_form(&pieces, &data);
            prop_assert_eq!(find(&file), Ok(pieces));
        }
    }
}
