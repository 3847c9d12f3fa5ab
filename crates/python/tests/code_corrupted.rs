//! No single changed byte in a function leads to another place.

mod code_support;

use code_support::{Build, builds, compile, compilers};
use python::code::{Function, Place, conclude, evaluate};
use python::file::PythonFile;

#[derive(Default, Debug)]
struct Counts {
    bytes: usize,
    same: usize,
    refused: usize,
    /// Of these, by the function itself.
    by_function: usize,
    other: Vec<(Function, u64, u8, Place)>,
}

/// Tries all other values of each byte of each function.
fn corrupt(data: &[u8], counts: &mut Counts) {
    let file = PythonFile::parse(data).expect("an ELF file");
    let said = Function::ALL.map(|function| evaluate(&file, function));
    let place = conclude(&file, said.clone()).expect("a place").place;
    for (index, function) in Function::ALL.into_iter().enumerate() {
        let Some(symbol) = file.symbol(function.name()) else { continue };
        let body = file.body(&symbol).expect("a body");
        for address in body {
            let byte = file.number(address, 1).expect("a byte") as u8;
            counts.bytes += 1;
            for other in (0..=255).filter(|&other| other != byte) {
                let changed = evaluate(&file.patched(address, &[other]), function);
                counts.by_function += usize::from(changed.is_err());
                let mut said = said.clone();
                said[index] = changed;
                match conclude(&file, said) {
                    Ok(derived) if derived.place == place => counts.same += 1,
                    Ok(derived) => counts.other.push((function, address, other, derived.place)),
                    Err(_) => counts.refused += 1,
                }
            }
        }
    }
}

fn corrupt_builds(part: usize, parts: usize) {
    let is_interpreter = |build: &Build| PythonFile::parse(&build.data).is_ok_and(|file| file.identify().is_some());
    let mut seen = 0;
    for build in builds().filter(is_interpreter).skip(part).step_by(parts) {
        let mut counts = Counts::default();
        corrupt(&build.data, &mut counts);
        let Counts { bytes, same, refused, by_function, .. } = counts;
        println!(
            "{}: {bytes} bytes: {same} same, {refused} refused; {by_function} by the function",
            build.path.display()
        );
        assert_eq!(counts.other, [], "{}", build.path.display());
        assert!(refused > 0, "nothing was changed");
        seen += 1;
    }
    if seen == 0 {
        println!("SKIPPED: no interpreter on this machine");
    }
}

#[test]
fn of_real_interpreters() {
    corrupt_builds(0, 2);
}

#[test]
fn of_other_real_interpreters() {
    corrupt_builds(1, 2);
}

#[test]
fn of_compiled_forms() {
    let links: [&[&str]; 2] = [&["-DMAIN", "-no-pie", "-fno-pie"], &["-shared", "-fPIC"]];
    for compiler in compilers() {
        for form in ["-DFORM=1", "-DFORM=2", "-DFORM=3", "-DFORM=4"] {
            for link in links {
                let mut flags = vec!["-O2", form];
                flags.extend(link);
                let Some(data) = compile(compiler, &flags) else { continue };
                let mut counts = Counts::default();
                corrupt(&data, &mut counts);
                assert_eq!(counts.other, [], "{} {flags:?}", compiler.name);
            }
        }
    }
}
