//! All forms of code, from several compilers: the place that is derived is the one that the symbol table gives.

mod code_support;

use std::collections::BTreeMap;
use std::process::Command;

use code_support::{Compiler, compile, compilers, symbol};
use python::code::{Access, Form, Function, KeyOf, Kind, Location, Place, Subject, derive};
use python::file::PythonFile;

const LEVELS: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-Os"];

/// How the file is linked.
const LINKS: [(&str, &[&str]); 4] = [
    ("static", &["-DMAIN", "-static", "-no-pie", "-fno-pie"]),
    ("fixed", &["-DMAIN", "-no-pie", "-fno-pie", "-rdynamic"]),
    ("pie", &["-DMAIN", "-pie", "-fPIE"]),
    ("shared", &["-shared", "-fPIC"]),
];

#[derive(Default)]
struct Kinds(BTreeMap<String, usize>);

impl Kinds {
    fn assert(&self, compiler: &Compiler, wanted: &[(Form, Subject)]) {
        println!("{} {}: {:#?}", compiler.name, if compiler.aarch64 { "aarch64" } else { "x86_64" }, self.0);
        for &(form, subject) in wanted {
            let kind = Kind { form, subject };
            assert!(self.0.contains_key(&format!("{kind:?}")), "{kind:?} was not seen");
        }
    }
}

/// Derives and compares; every function must say something.
fn check(what: &str, data: &[u8], form: u8, before: u64, kinds: &mut Kinds) {
    let file = PythonFile::parse(data).unwrap_or_else(|error| panic!("{what}: {error}"));
    let derived = derive(&file).unwrap_or_else(|error| panic!("{what}: {error}"));
    for finding in &derived.findings {
        *kinds.0.entry(format!("{:?}", finding.kind)).or_default() += 1;
        assert!(!finding.used.text.is_empty() && !finding.formed.text.is_empty(), "{what}: {finding:?}");
    }
    assert!(derived.refused.is_empty(), "{what}: {:?}", derived.refused);
    assert_eq!(derived.findings.len(), Function::ALL.len());
    match (form, derived.place) {
        (3, Place::Key { at: Location::File { address, .. }, of: KeyOf::Int }) => {
            assert_eq!(Some(address), symbol(data, "autoTLSkey").map(|(address, _)| address), "{what}");
        }
        (4, Place::ThreadLocal(variable)) => {
            let (offset, _) = symbol(data, "_Py_tss_gilstate").expect("the variable");
            assert_eq!(variable.in_block, offset, "{what}: {:?}", derived.findings);
        }
        (1 | 2 | 5, Place::Key { at: Location::File { address, in_runtime }, of: KeyOf::Tss }) => {
            let (runtime, _) = symbol(data, "_PyRuntime").expect("the runtime");
            assert_eq!(address, runtime + before + 4, "{what}: {:?}", derived.findings);
            assert_eq!(in_runtime, Some(before + 4), "{what}");
        }
        (_, place) => panic!("{what}: {place:?}"),
    }
}

fn all(compiler: &Compiler, form: u8, more: &[&str], kinds: &mut Kinds) {
    // an offset of one page and more needs two instructions on aarch64
    for (before, levels) in [(1544, &LEVELS[..]), (20_488, &LEVELS[2..3])] {
        for level in levels {
            for (link, flags) in LINKS {
                let definitions = [format!("-DFORM={form}"), format!("-DBEFORE={before}")];
                let mut arguments: Vec<&str> = definitions.iter().map(String::as_str).collect();
                arguments.push(level);
                arguments.extend(flags);
                arguments.extend(more);
                if let Some(data) = compile(compiler, &arguments) {
                    let what = format!("{} {link} {}", compiler.name, arguments.join(" "));
                    check(&what, &data, form, before, kinds);
                }
            }
        }
    }
}

#[test]
fn a_key_in_a_struct() {
    for compiler in compilers() {
        let mut kinds = Kinds::default();
        all(compiler, 1, &[], &mut kinds);
        all(compiler, 5, &[], &mut kinds);
        let forms = [Form::RuntimeOffset, Form::Relative].map(|form| (form, Subject::Struct));
        kinds.assert(compiler, &forms);
        if !compiler.aarch64 {
            kinds.assert(compiler, &[(Form::Absolute, Subject::Struct)]);
        }
    }
}

#[test]
fn a_key_that_is_read_by_the_function_itself() {
    for compiler in compilers() {
        let mut kinds = Kinds::default();
        all(compiler, 2, &[], &mut kinds);
        kinds.assert(compiler, &[Form::RuntimeOffset, Form::Relative].map(|form| (form, Subject::Key)));
    }
}

#[test]
fn a_key_in_an_int() {
    for compiler in compilers() {
        let mut kinds = Kinds::default();
        all(compiler, 3, &[], &mut kinds);
        kinds.assert(compiler, &[(Form::Relative, Subject::Key)]);
    }
}

#[test]
fn thread_local_variables() {
    for compiler in compilers() {
        let mut kinds = Kinds::default();
        all(compiler, 4, &[], &mut kinds);
        all(compiler, 4, &["-ftls-model=initial-exec"], &mut kinds);
        all(compiler, 4, &["-ftls-model=local-dynamic"], &mut kinds);
        // the dialect that is not the compiler's own choice
        let dialect = match (compiler.aarch64, compiler.clang) {
            (false, false) => Some("-mtls-dialect=gnu2"),
            (true, false) => Some("-mtls-dialect=trad"),
            (_, true) => None,
        };
        if let Some(dialect) = dialect {
            all(compiler, 4, &["-ftls-model=global-dynamic", dialect], &mut kinds);
        }
        kinds.assert(compiler, &[Form::LocalExec, Form::InitialExec].map(|form| (form, Subject::Variable)));
        let dynamic = match (compiler.aarch64, compiler.clang) {
            (false, false) | (true, false) => &[Form::ModuleBlock, Form::Descriptor][..],
            (false, true) => &[Form::ModuleBlock],
            (true, true) => &[Form::Descriptor],
        };
        kinds.assert(compiler, &dynamic.iter().map(|&form| (form, Subject::Variable)).collect::<Vec<_>>());
    }
}

#[test]
fn other_ways_to_compile_and_link() {
    for compiler in compilers() {
        let mut kinds = Kinds::default();
        let common: &[&[&str]] = &[
            &["-fno-plt", "-shared", "-fPIC"],
            &["-shared", "-fPIC", "-Wl,-Bsymbolic"],
            &["-shared", "-fPIC", "-Wl,-z,norelro"],
            &["-shared", "-fPIC", "-Wl,-z,now"],
            &["-shared", "-fPIC", "-Wl,--hash-style=sysv"],
            &["-shared", "-fPIC", "-fvisibility=hidden", "-fno-semantic-interposition", "-DMAIN"],
            &["-DMAIN", "-static-pie", "-fPIE"],
            &["-DMAIN", "-pie", "-fPIE", "-flto", "-rdynamic"],
            &["-DMAIN", "-pie", "-fPIE", "-fno-asynchronous-unwind-tables"],
            &["-DMAIN", "-pie", "-fPIE", "-ffunction-sections", "-Wl,--gc-sections", "-rdynamic"],
            &["-DMAIN", "-no-pie", "-fno-pie", "-fPIC", "-static"],
        ];
        let x86_64: &[&[&str]] = &[
            &["-DMAIN", "-no-pie", "-fno-pie", "-mcmodel=large"],
            &["-shared", "-fPIC", "-mcmodel=large"],
            &["-shared", "-fPIC", "-mcmodel=medium"],
            &["-DMAIN", "-pie", "-fPIE", "-fcf-protection=full", "-fomit-frame-pointer"],
        ];
        let aarch64: &[&[&str]] = &[
            &["-DMAIN", "-no-pie", "-fno-pie", "-mcmodel=large"],
            &["-DMAIN", "-no-pie", "-fno-pie", "-mcmodel=tiny"],
            &["-DMAIN", "-pie", "-fPIE", "-mbranch-protection=standard"],
            &["-shared", "-fPIC", "-mbranch-protection=standard"],
            &["-DMAIN", "-pie", "-fPIE", "-moutline-atomics", "-march=armv8.3-a"],
        ];
        let lld: &[&[&str]] = &[&["-DMAIN", "-pie", "-fPIE", "-Wl,--pack-dyn-relocs=relr"]];
        let own = if compiler.aarch64 { aarch64 } else { x86_64 };
        let ways = common.iter().chain(own).chain(if compiler.clang { lld } else { &[] });
        for flags in ways {
            for form in [1, 2, 3, 4, 5] {
                let definition = format!("-DFORM={form}");
                let mut arguments = vec!["-O2", &definition];
                arguments.extend(*flags);
                if let Some(data) = compile(compiler, &arguments) {
                    let what = format!("{} {}", compiler.name, arguments.join(" "));
                    check(&what, &data, form, 1544, &mut kinds);
                }
            }
        }
        println!("{}: {:#?}", compiler.name, kinds.0);
    }
}

/// Functions in one object, the runtime in another.
#[test]
fn a_runtime_that_is_imported() {
    for compiler in compilers() {
        for form in [1, 2] {
            let definition = format!("-DFORM={form}");
            let Some(data) = compile(compiler, &["-O2", &definition, "-DIMPORTED", "-shared", "-fPIC"]) else {
                continue;
            };
            let file = PythonFile::parse(&data).expect("a file");
            let derived = derive(&file).unwrap_or_else(|error| panic!("{}: {error}", compiler.name));
            let at = Location::Runtime { offset: 1548 };
            assert_eq!(derived.place, Place::Key { at, of: KeyOf::Tss });
            assert_eq!(derived.findings.len(), 4);
        }
    }
}

/// The distance that a program has from its own thread pointer to the variable.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_distance_from_the_thread_pointer_is_the_programs() {
    for compiler in compilers().into_iter().filter(|compiler| !compiler.aarch64) {
        let Some(data) = compile(compiler, &["-O2", "-DFORM=4", "-DMAIN", "-pie", "-fPIE"]) else { continue };
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("program");
        std::fs::write(&program, &data).expect("a program");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("a program");
        let output = Command::new(&program).output().expect("a run");
        let output = String::from_utf8(output.stdout).expect("text");
        let distance = output.lines().find_map(|line| line.strip_prefix("distance ")).expect("a distance");
        let file = PythonFile::parse(&data).expect("a file");
        let Ok(Place::ThreadLocal(variable)) = derive(&file).map(|derived| derived.place) else { panic!("a variable") };
        assert_eq!(variable.access, Access::ThreadPointer);
        assert_eq!(variable.offset.to_string(), distance);
    }
}
