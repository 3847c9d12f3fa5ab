//! Real interpreters: what is derived from their code, compared with what other sources say.

mod code_support;

use std::path::Path;
use std::process::Command;

use code_support::{builds, symbol};
use python::Version;
use python::code::{Access, FunctionRefusal, KeyOf, Location, Place, derive};
use python::file::{Architecture, PythonFile, VersionSource};

/// `autoTSSkey` in `_PyRuntime`, x86_64 and aarch64: from DWARF, and from a C program compiled with each version's headers.
const OFFSETS: [(u8, u64, u64); 8] = [
    (7, 1504, 1520),
    (8, 1392, 1408),
    (9, 584, 600),
    (10, 584, 600),
    (11, 592, 608),
    (12, 1544, 1544),
    (13, 2160, 2160),
    (14, 2336, 2336),
];

#[test]
fn the_key_of_every_interpreter_is_where_its_version_has_it() {
    let mut seen = Vec::new();
    for build in builds() {
        let path = build.path.display();
        let Ok(file) = PythonFile::parse(&build.data) else { continue };
        let Some(identity) = file.identify() else { continue };
        let version = identity.version.unwrap_or_else(|error| panic!("{path}: {error}"));
        let derived = derive(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
        println!("{path}: {version}: {}", derived.place);
        derived.findings.iter().for_each(|finding| println!("  {finding}"));
        assert!(derived.is_confirmed(), "{path}");
        for refused in &derived.refused {
            // PyGILState_Check came with 3.4; that of 3.6 asks PyGILState_GetThisThreadState
            let expected = match version.minor {
                7 if version.major == 2 => FunctionRefusal::Absent,
                _ => FunctionRefusal::NoLookup,
            };
            assert!(version.minor == 6 || version.major == 2, "{path}: {refused}");
            assert_eq!(refused.refusal, expected, "{path}: {refused}");
        }
        let runtime = symbol(&build.data, "_PyRuntime").map(|(address, _)| address);
        match derived.place {
            Place::Key { at: Location::File { address, in_runtime }, of: KeyOf::Tss } => {
                let (_, x86_64, aarch64) = OFFSETS.into_iter().find(|row| row.0 == version.minor).expect("a row");
                let expected = if file.architecture() == Architecture::X86_64 { x86_64 } else { aarch64 };
                assert_eq!(in_runtime, Some(expected + 4), "{path}");
                assert_eq!(address, runtime.expect("the runtime") + expected + 4, "{path}");
            }
            Place::Key { at: Location::File { address, in_runtime: None }, of: KeyOf::Int } => {
                assert!(version < Version::release(3, 7, 0), "{path}");
                // a stripped build keeps no local symbol
                if let Some((expected, size)) = symbol(&build.data, "autoTLSkey") {
                    assert_eq!((address, 4), (expected, size), "{path}");
                }
            }
            Place::ThreadLocal(variable) => {
                assert_eq!((version.major, version.minor), (3, 15), "{path}");
                if let Some((expected, _)) = symbol(&build.data, "_Py_tss_gilstate") {
                    assert_eq!(variable.in_block, expected, "{path}");
                }
            }
            place => panic!("{path}: {place:?}"),
        }
        seen.push((version, file.architecture()));
    }
    if seen.is_empty() {
        println!("SKIPPED: no interpreter on this machine");
    }
}

/// What was measured on a sleeping and on a busy thread of Debian's 3.15.2.
#[test]
fn the_variable_of_3_15_is_the_measured_one() {
    let mut seen = 0;
    for build in builds().filter(|build| !build.path.ends_with("python3.15d")) {
        let Ok(file) = PythonFile::parse(&build.data) else { continue };
        let is_debug = build.path.to_string_lossy().contains("3.15d");
        let version = file.identify().and_then(|identity| identity.version.ok());
        if version != Some(Version::release(3, 15, 2)) || is_debug {
            continue;
        }
        seen += 1;
        let place = derive(&file).expect("a place").place;
        let Place::ThreadLocal(variable) = place else { panic!("{place:?}") };
        match (file.architecture(), file.is_fixed(), variable.access) {
            (Architecture::X86_64, true, Access::ThreadPointer) => assert_eq!(variable.offset, -0x28),
            (Architecture::X86_64, false, Access::Module { .. }) => assert_eq!(variable.offset, 0x28),
            (Architecture::Aarch64, true, Access::ThreadPointer) => assert_eq!(variable.offset, 0x20),
            (Architecture::Aarch64, false, Access::Descriptor { .. }) => assert_eq!(variable.offset, 0),
            other => panic!("{}: {other:?}", build.path.display()),
        }
    }
    if seen == 0 {
        println!("NOT HERE: no CPython 3.15.2");
    }
}

/// What gdb finds in the debug information.
#[test]
fn the_key_is_where_the_debug_information_has_it() {
    let mut seen = 0;
    for build in builds() {
        let Ok(file) = PythonFile::parse(&build.data) else { continue };
        if file.identify().is_none() || file.architecture() != Architecture::X86_64 {
            continue;
        }
        let Ok(derived) = derive(&file) else { continue };
        let Place::Key { at: Location::File { address, .. }, of } = derived.place else { continue };
        let expression = if of == KeyOf::Int { "&autoTLSkey" } else { "&_PyRuntime.gilstate.autoTSSkey._key" };
        let Some(expected) = gdb(&build.path, expression) else { continue };
        assert_eq!(address, expected, "{}", build.path.display());
        seen += 1;
    }
    if seen == 0 {
        println!("SKIPPED: no interpreter with debug information, or no gdb");
    }
    println!("{seen} interpreters");
}

fn gdb(path: &Path, expression: &str) -> Option<u64> {
    let print = format!("printf \"%lu\\n\", (unsigned long) {expression}");
    let output = Command::new("gdb").args(["-q", "-batch", "-nx", "-ex", &print]).arg(path).output().ok()?;
    String::from_utf8(output.stdout).ok()?.lines().last()?.trim().parse().ok()
}

/// What an interpreter says of itself, run.
#[test]
fn the_version_is_what_the_interpreter_says() {
    let mut seen = 0;
    for build in builds() {
        let name = build.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(file) = PythonFile::parse(&build.data) else { continue };
        let Some(identity) = file.identify() else { continue };
        let version = identity.version.unwrap_or_else(|error| panic!("{name}: {error}"));
        let wanted = match (version.major, version.minor) {
            (3, 13..) => 3,
            (3, 11..) => 2,
            _ => 1,
        };
        assert_eq!(identity.evidence.len(), wanted, "{name}: {:?}", identity.evidence);
        assert!(identity.evidence.iter().any(|evidence| evidence.source == VersionSource::Text), "{name}");
        let beside = build.path.parent().and_then(Path::parent).map(|parent| parent.join("bin/python"));
        let program = if name.contains(".so") { beside.filter(|path| path.exists()) } else { Some(build.path.clone()) };
        let Some(program) = program.filter(|_| file.architecture() == Architecture::X86_64) else { continue };
        let script = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
        let Ok(output) = Command::new(program).args(["-I", "-c", script]).output() else { continue };
        if output.status.success() {
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), version.to_string(), "{name}");
            seen += 1;
        }
    }
    println!("{seen} interpreters were asked");
}

/// Programs that import CPython's functions, and programs that have nothing to do with it.
#[test]
fn a_file_that_only_imports_is_none() {
    let mut importing = 0;
    for build in builds() {
        let Ok(file) = PythonFile::parse(&build.data) else { continue };
        let defines = symbol(&build.data, "_PyEval_EvalFrameDefault").or(symbol(&build.data, "PyEval_EvalFrameEx"));
        assert_eq!(file.identify().is_some(), defines.is_some(), "{}", build.path.display());
        importing += usize::from(defines.is_none() && file.mentions("Py_BytesMain"));
    }
    println!("{importing} programs that import");
    let own = std::fs::read("/proc/self/exe").expect("this program");
    assert_eq!(PythonFile::parse(&own).expect("an ELF file").identify(), None);
    if let Ok(gdb) = std::fs::read("/usr/bin/gdb") {
        let gdb = PythonFile::parse(&gdb).expect("an ELF file");
        assert_eq!(gdb.identify(), None);
    }
}

/// A stripped file has `.dynsym`, and its functions' ends are those of `.eh_frame_hdr`.
#[test]
fn a_stripped_interpreter_says_the_same() {
    let mut seen = 0;
    for build in builds() {
        let Ok(file) = PythonFile::parse(&build.data) else { continue };
        let Some(identity) = file.identify() else { continue };
        let stripped = without_section_headers(&build.data);
        let other = PythonFile::parse(&stripped).expect("an ELF file");
        // what a program exports is in .dynsym; one that is linked statically has nothing left
        if other.symbol("Py_GetVersion").is_none() {
            continue;
        }
        let path = build.path.display();
        assert_eq!(other.identify().map(|identity| identity.version), Some(identity.version), "{path}");
        let (one, two) = (derive(&file).expect("a place"), derive(&other).expect("a place"));
        assert_eq!(one.place, two.place, "{path}");
        assert_eq!(one.findings.len(), two.findings.len(), "{path}: {:?}", two.refused);
        seen += 1;
    }
    println!("{seen} interpreters");
}

/// More than `strip` takes: no section at all.
fn without_section_headers(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    data[40..48].fill(0);
    data[60..64].fill(0);
    data
}
