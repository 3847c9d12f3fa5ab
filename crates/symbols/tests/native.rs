//! Names, lines and inlined functions, compared to nm, addr2line and objdump.

mod common;

use common::*;
use std::path::{Path, PathBuf};
use symbols::{Named, NamedFile, NativeNamer, ObjectFile, Reason, demangle};

/// Each function's start and inside has one of the names that nm has at its start, and lies in no other's.
fn assert_names_like_nm(path: &Path, flags: &[&str]) -> usize {
    let functions = functions(path, flags);
    let (mut addresses, mut expected) = (Vec::new(), Vec::new());
    let mut reach = 0;
    for (start, (names, size)) in &functions {
        // of nested ones only the first is compared
        if *size == 0 || *start < reach {
            continue;
        }
        reach = start + size;
        let until_next = functions.range(start + 1..).next().map_or(u64::MAX, |(next, _)| next - start);
        for into in [0, size / 2, size - 1] {
            if into < until_next {
                addresses.push(start + into);
                expected.push(names.clone());
            }
        }
    }
    for ((address, names), named) in addresses.iter().zip(&expected).zip(name_all(path, &addresses)) {
        let allowed: Vec<String> = names.iter().map(|name| demangle(name.as_bytes())).collect();
        assert!(allowed.iter().any(|name| name == outer(&named)), "{address:#x}: {named:?}, not {allowed:?}");
    }
    addresses.len()
}

#[test]
fn every_function_of_compiled_programs() {
    for (source, flags) in [
        (C, &["-O2", "-g"][..]),
        (C, &["-O0"]),
        (C, &["-O1", "-static"]),
        (CPP, &["-O2", "-g"]),
        (CPP, &["-O0", "-g", "-no-pie"]),
        (RUST, &["-g", "-Copt-level=2"]),
        (RUST, &["-Csymbol-mangling-version=v0"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let program = compile(directory.path(), source, flags);
        assert!(assert_names_like_nm(&program, &[]) > 10);
    }
}

#[test]
fn every_exported_function_of_system_libraries() {
    for line in run("ldd", &[std::env::current_exe().unwrap().to_str().unwrap()]).lines() {
        let Some(path) = line.split_whitespace().find(|word| word.starts_with('/')) else { continue };
        let path = std::fs::canonicalize(path).unwrap();
        assert!(assert_names_like_nm(&path, &["-D"]) > 30, "{}", path.display());
        let reasons =
            NativeNamer::with_debug_directories(Vec::new()).name(&ObjectFile::open(&path).unwrap(), &[]).reasons;
        assert_eq!(reasons, [Reason::OnlyExported]);
    }
}

#[test]
fn a_32_bit_program() {
    let directory = tempfile::tempdir().unwrap();
    let source =
        "int f(int x) { return x * 3; }\nint g(int x) { return f(x) + 1; }\nvoid _start(void) { g(1); for (;;); }\n";
    let flags = ["-m32", "-nostdlib", "-static", "-O1", "-g", "-fno-pie", "-no-pie"];
    let program = compile(directory.path(), source, &flags);
    assert!(assert_names_like_nm(&program, &[]) >= 6);
}

#[test]
fn alignment_between_functions_has_no_name() {
    let directory = tempfile::tempdir().unwrap();
    let source = "__asm__(\".text\\n.type one,@function\\none: nop\\n.size one,1\\n.zero 4096\\n.type two,@function\\n\
                  two: nop\\n.size two,1\\nbare: nop\\nret\\n\");\nint main(void) { return 0; }\n";
    let program = compile(directory.path(), source, &["-O1"]);
    let text = run("nm", &[program.to_str().unwrap()]);
    let address = |name: &str| {
        let line = text.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    };
    let (one, bare) = (address("one"), address("bare"));
    let names = name_all(&program, &[one, one + 1, one + 4096, one + 4097, bare, bare + 1, address("_start")]);
    let names: Vec<&str> = names.iter().map(outer).collect();
    assert_eq!(names, ["one", "", "", "two", "bare", "bare", "_start"]);
}

/// What `addr2line -fi` says of an address: function, file, line, innermost first.
fn addr2line(path: &Path, addresses: &[u64]) -> Vec<Vec<(String, String, u32)>> {
    let mut frames = Vec::new();
    for chunk in addresses.chunks(500) {
        let texts: Vec<String> = chunk.iter().map(|address| format!("{address:#x}")).collect();
        let mut arguments = vec!["-afi", "-e", path.to_str().unwrap()];
        arguments.extend(texts.iter().map(String::as_str));
        let output = run("addr2line", &arguments);
        let mut lines = output.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("0x") {
                frames.push(Vec::new());
                continue;
            }
            let (file, number) = lines.next().unwrap().rsplit_once(':').unwrap();
            let number = number.split(' ').next().unwrap().parse().unwrap_or(0);
            frames.last_mut().unwrap().push((demangle(line.as_bytes()), file.to_owned(), number));
        }
    }
    assert_eq!(frames.len(), addresses.len());
    frames
}

/// Shares of sampled addresses at which the whole chain, and each function's line, are those of addr2line.
fn agreement(path: &Path, step: usize) -> (f64, f64, usize) {
    // addr2line gives gaps between functions the name before them
    let functions = functions(path, &[]);
    let inside = |address: &u64| {
        functions.range(..=address).next_back().is_some_and(|(start, (_, size))| address - start < *size)
    };
    let addresses: Vec<u64> = section(path, ".text").step_by(step).filter(inside).collect();
    let (ours, theirs) = (name_all(path, &addresses), addr2line(path, &addresses));
    let (mut chains, mut lines, mut inlined) = (0, 0, 0);
    for (named, frames) in ours.iter().zip(&theirs) {
        // where a part was cloned or split off, addr2line says `main`, we and nm say `main.cold`
        let base = |name: &str| name.split(" [clone").next().unwrap().trim_end_matches(".cold").to_owned();
        let our_names: Vec<String> = named.functions.iter().map(|function| base(&function.name)).collect();
        let known = frames.iter().filter(|frame| frame.0 != "??");
        let their_names: Vec<String> = known.clone().map(|frame| base(&frame.0)).collect();
        chains += usize::from(our_names == their_names);
        let our_lines = named.functions.iter().map(|function| function.line);
        lines += usize::from(our_lines.eq(known.map(|frame| frame.2)));
        inlined += usize::from(named.functions.len() > 1);
    }
    let share = |count| f64::from(count as u32) / addresses.len() as f64;
    (share(chains), share(lines), inlined)
}

#[test]
fn inlined_functions_and_lines_are_those_of_addr2line() {
    for (source, flags, step) in [
        (C, &["-O2", "-g"][..], 1),
        (C, &["-O2", "-g", "-gdwarf-4"], 1),
        (CPP, &["-O2", "-g"], 3),
        (CPP, &["-O2", "-g", "-gz=zlib"], 3),
        (RUST, &["-g", "-Copt-level=2", "-Cdebuginfo=2"], 997),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let program = compile(directory.path(), source, flags);
        let (chains, lines, inlined) = agreement(&program, step);
        println!("{flags:?}: chains {chains:.4}, lines {lines:.4}, {inlined} with inlined functions");
        assert!(inlined > 10 && chains > 0.98 && lines > 0.98, "{flags:?}: {chains} {lines} {inlined}");
    }
}

#[test]
fn an_inlined_chain_in_full() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), C, &["-O2", "-g"]);
    let line_of = |text: &str| C.lines().position(|line| line.contains(text)).unwrap() as u32 + 1;
    let middle = *functions(&program, &[]).iter().find(|(_, (names, _))| names[0] == "middle").unwrap().0;
    let addresses: Vec<u64> = (middle..middle + 60).collect();
    let named = name_all(&program, &addresses);
    let whole = named.iter().find(|named| named.functions.len() == 3).expect("two functions inlined into a third");
    let file = directory.path().join("program.c").to_str().unwrap().to_owned();
    let got: Vec<_> = whole.functions.iter().map(|f| (f.name.as_str(), f.line, f.start_line, f.inlined)).collect();
    let expected = [
        ("twice", line_of("x * 2 + rand"), line_of("int twice"), true),
        ("thrice", line_of("x / 3"), line_of("int thrice"), true),
        ("middle", line_of("sum += thrice"), line_of("int middle"), false),
    ];
    assert_eq!(got, expected);
    assert!(whole.functions.iter().all(|function| function.file.as_deref() == Some(&file)));
}

#[test]
fn rust_links_with_offsets_unlike_addresses() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), RUST, &["-g"]);
    let code = segments(&program).into_iter().find(|segment| segment.3).unwrap();
    assert_ne!(code.0, code.1, "the linker put code at its file offset: this test needs lld");
    let functions = functions(&program, &[]);
    let is_add = |names: &[String]| {
        demangle(names[0].as_bytes()).contains("::Counter<T>>::add")
            || demangle(names[0].as_bytes()).contains("Counter<T>::add")
    };
    let (start, _) = functions.iter().find(|(_, (names, _))| is_add(names)).unwrap();
    let named = &name_all(&program, &[*start])[0];
    let function = named.functions.last().unwrap();
    assert!(function.name.ends_with("Counter<T>::add"), "{function:?}");
    assert!(function.file.as_ref().unwrap().ends_with("/program.rs"));
    assert_eq!(function.line as usize, RUST.lines().position(|line| line.contains("fn add")).unwrap() + 1);
}

#[test]
fn plt_stubs_have_the_names_of_objdump() {
    for (source, flags) in [
        (C, &["-O1", "-Wl,-z,lazy"][..]),
        (C, &["-O1", "-Wl,-z,now"]),
        (C, &["-O1", "-Wl,-z,lazy,-z,ibtplt", "-fcf-protection=full"]),
        (CPP, &["-O1", "-Wl,-z,lazy"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let program = compile(directory.path(), source, flags);
        run("strip", &[program.to_str().unwrap()]);
        let text = run("objdump", &["-d", program.to_str().unwrap()]);
        let label = |line: &str| {
            let (address, rest) = line.split_once(" <")?;
            let name = rest.strip_suffix("@plt>:")?.to_owned();
            Some((u64::from_str_radix(address, 16).ok()?, name))
        };
        let stubs: Vec<(u64, String)> = text.lines().filter_map(label).collect();
        assert!(stubs.iter().any(|(_, name)| name == "strlen" || name == "printf"), "{stubs:?}");
        let addresses: Vec<u64> = stubs.iter().flat_map(|(address, _)| [*address, address + 4]).collect();
        for (index, named) in name_all(&program, &addresses).iter().enumerate() {
            let expected = demangle(format!("{}@plt", stubs[index / 2].1).as_bytes());
            assert_eq!(outer(named), expected, "{flags:?} {:#x}", addresses[index]);
        }
    }
}

/// The debug information of functions that the linker threw away stays behind, at address 0 and up: over real code.
#[test]
fn functions_thrown_away_name_nothing() {
    let source = "__attribute__((noinline)) int used(int x) { return x * 3; }\n\
                  int dead(int x) { __asm__(\".zero 0x40000\"); return x + used(x); }\n\
                  int main(int argc, char **argv) { return used(argc); }\n";
    for flags in [&["-O1"][..], &["-O1", "-gdwarf-4"], &["-O1", "-fno-inline"]] {
        let directory = tempfile::tempdir().unwrap();
        let mut all = vec!["-g", "-ffunction-sections", "-Wl,--gc-sections"];
        all.extend(flags);
        let program = compile(directory.path(), source, &all);
        let functions = functions(&program, &[]);
        let find = |name: &str| functions.iter().find(|(_, (names, _))| names[0] == name).map(|(start, _)| *start);
        assert_eq!(find("dead"), None);
        let (used, main) = (find("used").unwrap(), find("main").unwrap());
        assert!(used < 0x40000);
        let named = name_all(&program, &[used, main]);
        for (named, expected) in named.iter().zip([("used", 1), ("main", 3)]) {
            let function = named.functions.last().unwrap();
            assert_eq!((function.name.as_str(), function.start_line), expected, "{flags:?}");
        }
        // code without debug information gets no line of theirs
        let start = name_all(&program, &[section(&program, ".text").start]).remove(0).functions.remove(0);
        assert_eq!((start.name.as_str(), start.line, start.file), ("_start", 0, None));
        let segments = segments(&program);
        let headers = NativeNamer::new().name(&ObjectFile::open(&program).unwrap(), &[0, 0x40, segments[0].2 - 1]);
        assert_eq!(headers.named, vec![Named::default(); 3]);
    }
}

#[test]
fn compressed_debug_information() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), CPP, &["-O2", "-g"]);
    let addresses: Vec<u64> = section(&program, ".text").step_by(5).collect();
    let plain = name_all(&program, &addresses);
    assert!(plain.iter().filter(|named| named.functions.len() > 1).count() > 100);
    for kind in ["zlib", "zlib-gnu", "zstd"] {
        let packed = directory.path().join(kind);
        let option = format!("--compress-debug-sections={kind}");
        run("objcopy", &[&option, program.to_str().unwrap(), packed.to_str().unwrap()]);
        assert!(packed.metadata().unwrap().len() < program.metadata().unwrap().len());
        assert_eq!(name_all(&packed, &addresses), plain, "{kind}");
    }
}

#[test]
fn a_deleted_file_is_named_by_what_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), C, &["-O2", "-g"]);
    let segments = segments(&program);
    let offsets: Vec<u64> = functions(&program, &[]).keys().map(|address| offset_of(&segments, *address)).collect();
    let file = ObjectFile::open(&program).unwrap();
    let before = NativeNamer::new().name(&file, &offsets);
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "something else").unwrap();
    assert_eq!(NativeNamer::new().name(&file, &offsets), before);
    assert_eq!(before.reasons, []);
    assert!(before.named.iter().any(|named| outer(named) == "main"));
}

#[test]
fn what_cannot_be_named_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let program = compile(directory.path(), C, &["-O2", "-static"]);
    let reasons = |path: &Path| NativeNamer::new().name(&ObjectFile::open(path).unwrap(), &[]).reasons;
    assert_eq!(reasons(&program), []);

    let file = ObjectFile::open(&program).unwrap();
    run("strip", &["-o", path("stripped").to_str().unwrap(), program.to_str().unwrap()]);
    assert_eq!(reasons(&path("stripped")), [Reason::Stripped]);
    assert_eq!(name_all(&path("stripped"), &[section(&program, ".text").start + 64]), [Named::default()]);

    assert!(matches!(ObjectFile::open(&path("missing")), Err(Reason::NotOpened(_))));
    assert!(matches!(ObjectFile::open(directory.path()), Err(Reason::NotOpened(_))));
    std::fs::write(path("text"), "just text, long enough for a header of any kind of file ......").unwrap();
    assert!(matches!(reasons(&path("text"))[..], [Reason::NotElf(_)]));
    std::fs::write(path("empty"), "").unwrap();
    assert!(matches!(reasons(&path("empty"))[..], [Reason::NotElf(_)]));

    let namer = NativeNamer::new();
    assert_eq!(namer.name(&file, &[]).reasons, []);
    let mut bytes = std::fs::read(&program).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&program, bytes).unwrap();
    let changed = namer.name(&file, &[0x1000]);
    assert_eq!((changed.reasons, changed.named), (vec![Reason::Changed], vec![Named::default()]));
}

#[test]
fn damage_anywhere_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), C, &["-O2", "-g"]);
    let bytes = std::fs::read(&program).unwrap();
    let text = section(&program, ".text");
    let segments = segments(&program);
    let offsets: Vec<u64> = text.step_by(40).map(|address| offset_of(&segments, address)).collect();
    let damaged: PathBuf = directory.path().join("damaged");
    let mut named = 0;
    // headers and tables whole, the rest in steps: a step that is prime meets every kind of place
    for at in (0..4096).step_by(3).chain((4096..bytes.len()).step_by(13)) {
        let mut copy = bytes.clone();
        copy[at] ^= 1 << (at % 8) | 0x80;
        std::fs::write(&damaged, copy).unwrap();
        let file = ObjectFile::open(&damaged).unwrap();
        let NamedFile { named: names, reasons } = NativeNamer::new().name(&file, &offsets);
        assert_eq!(names.len(), offsets.len());
        named += usize::from(names.iter().any(|named| !named.functions.is_empty()));
        assert!(!reasons.iter().any(|reason| matches!(reason, Reason::Panicked(_))), "byte {at}: {reasons:?}");
    }
    assert!(named > 1000, "{named}");
}
