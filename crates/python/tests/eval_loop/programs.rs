//! Eval loops that compilers make here (programs/loops.c), in the forms that CPython's builds have.

use std::path::Path;
use std::process::Command;

use python::eval_loop::{EvalLoopRefusal, Piece, PieceKind};

use crate::code_support::{Compiler, compilers};
use crate::{check_form, names, of, stripped};

const ENTRY: &str = "_PyEval_EvalFrameDefault";

/// Compiles `loops.c`; `None` if this compiler does not know one of the flags.
pub fn compile(compiler: &Compiler, flags: &[&str]) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/loops.c");
    let output = directory.path().join("made");
    let mut command = Command::new(compiler.name);
    command.args(compiler.flags()).arg("-w").args(flags).arg("-o").arg(&output).arg(source);
    let result = command.output().expect("a compiler");
    if !result.status.success() {
        let complaint = String::from_utf8_lossy(&result.stderr);
        println!("NOT HERE: {} {}: {}", compiler.name, flags.join(" "), complaint.lines().next().unwrap_or_default());
        return None;
    }
    Some(std::fs::read(output).expect("what was made"))
}

/// Each way of linking and optimising, with a form, by each compiler. What is found is the same without symbols.
fn each(form: &[&str], mut check: impl FnMut(&str, &[u8], &[Piece])) {
    let links: [&[&str]; 3] =
        [&["-fPIC", "-shared"], &["-no-pie", "-fno-pie", "-rdynamic"], &["-pie", "-fPIE", "-rdynamic"]];
    let mut made = 0;
    for compiler in compilers() {
        for link in links {
            // how a file is linked and how its code is optimised do not depend on each other
            for optimised in if link.contains(&"-shared") { &["-O2", "-Os"][..] } else { &["-O2"] } {
                let flags = [link, form, &[*optimised][..]].concat();
                let Some(data) = compile(compiler, &flags) else { continue };
                let name = format!("{} {}", compiler.name, flags.join(" "));
                let pieces = of(&data).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                check_form(&pieces, &data);
                names::check(&pieces, &data);
                check(&name, &data, &pieces);
                let less = stripped(&data).unwrap_or_else(|| panic!("SKIPPED: nothing strips {name}"));
                assert_eq!(of(&less), Ok(pieces), "{name} without its symbols");
                made += 1;
            }
        }
    }
    if made == 0 {
        println!("SKIPPED: no compiler here");
    }
}

#[test]
fn one_function() {
    let mut split = 0;
    each(&[], |name, data, pieces| {
        assert!(pieces.iter().all(|piece| piece.kind == PieceKind::Main), "{name}: {pieces:x?}");
        split += usize::from(names::kind_of(pieces, data, "_PyEval_EvalFrameDefault.cold").is_some());
    });
    println!("{split} of them with a cold part");
}

#[test]
fn a_wrapper_and_its_loop() {
    each(&["-DWRAPPER"], |name, data, pieces| {
        assert_eq!(names::kind_of(pieces, data, ENTRY), Some(PieceKind::Part), "{name}");
        let part = names::kind_of(pieces, data, "_PyEval_EvalFrameDefault.part.0");
        assert_eq!(part, Some(PieceKind::Main), "{name}");
    });
}

#[test]
fn calls_in_tail_position() {
    each(&["-DTAIL"], |name, data, pieces| {
        assert_eq!(names::kind_of(pieces, data, ENTRY), Some(PieceKind::Main), "{name}");
        for label in ["_TAIL_CALL_error", "_TAIL_CALL_unwind", "_TAIL_CALL_7F"] {
            let kind = names::kind_of(pieces, data, label);
            // a compiler may have made one function of two
            assert!(kind != Some(PieceKind::Main), "{name}: {label}");
        }
    });
}

#[test]
fn copies_of_the_entry_in_other_functions() {
    for compiler in compilers() {
        let Some(data) = compile(compiler, &["-O2", "-fPIC", "-shared", "-DTAIL", "-DINLINED"]) else { continue };
        let pieces = of(&data).unwrap_or_else(|refusal| panic!("{}: {refusal}", compiler.name));
        check_form(&pieces, &data);
        for function in [ENTRY, "vector"] {
            assert_eq!(
                names::kind_of(&pieces, &data, function),
                Some(PieceKind::Main),
                "{}: {function}",
                compiler.name
            );
        }
        for function in ["_TAIL_CALL_42", "_TAIL_CALL_error"] {
            assert_ne!(names::kind_of(&pieces, &data, function), Some(PieceKind::Main), "{}", compiler.name);
        }
        for function in ["work", "rare", "run", "other_42"] {
            assert_eq!(names::kind_of(&pieces, &data, function), None, "{}: {function}", compiler.name);
        }
        let less = stripped(&data).expect("a tool that strips");
        assert_eq!(of(&less), Ok(pieces), "{} without its symbols", compiler.name);
    }
}

#[test]
fn other_functions_with_its_name() {
    for compiler in compilers() {
        let Some(data) = compile(compiler, &["-O2", "-fPIC", "-shared", "-D_PyEval_EvalFrameDefault=loop"]) else {
            continue;
        };
        assert_eq!(of(&data), Err(EvalLoopRefusal::NoSymbol), "{}", compiler.name);
        let Some(data) = compile(compiler, &["-O2", "-fPIC", "-shared", "-DNONE"]) else { continue };
        assert!(matches!(of(&data), Err(EvalLoopRefusal::NoLoop { .. })), "{}", compiler.name);
    }
}
