//! Where C libraries keep the values of pthread keys. The oracle is a program that stores values and looks for them in its
//! own memory (probes/slots.c); for compiled forms, the offsets that were given to the compiler.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use processes::maps::MapsEnd;
use processes::memory::ProcessMemory;
use processes::thread_pointer::{Patience, of_thread};
use python::slot::{self, ProcessSlotRefusal, SlotEvidence, SlotLayout, SlotPlace, SlotRefusal};

/// A way of building the probe and of running it.
struct Build {
    name: &'static str,
    compiler: &'static [&'static str],
    runner: &'static [&'static str],
    evidence: SlotEvidence,
}

const BUILDS: [Build; 6] = [
    Build { name: "glibc", compiler: &["cc"], runner: &[], evidence: SlotEvidence::DescriptorsAndCode },
    Build {
        name: "glibc-static",
        compiler: &["cc", "-static"],
        runner: &[],
        evidence: SlotEvidence::DescriptorsAndCode,
    },
    Build { name: "musl", compiler: &["musl-gcc"], runner: &[], evidence: SlotEvidence::GetAndSet },
    Build { name: "musl-static", compiler: &["musl-gcc", "-static"], runner: &[], evidence: SlotEvidence::GetAndSet },
    Build {
        name: "glibc-aarch64",
        compiler: &["aarch64-linux-gnu-gcc"],
        runner: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
        evidence: SlotEvidence::DescriptorsAndCode,
    },
    Build {
        name: "glibc-aarch64-static",
        compiler: &["aarch64-linux-gnu-gcc", "-static"],
        runner: &["qemu-aarch64"],
        evidence: SlotEvidence::DescriptorsAndCode,
    },
];

fn probe_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/probes").join(name)
}

/// A directory for a test, empty.
fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slot").join(test);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

/// Runs a compiler; false if there is none.
fn compile(command: &[&str], arguments: &[&str], source: &Path, output: &Path) -> bool {
    let mut compiler = Command::new(command[0]);
    compiler.args(&command[1..]).args(arguments).arg("-o").args([output, source]);
    match compiler.status() {
        Ok(status) => {
            assert!(status.success(), "{command:?} {arguments:?} compiles {}", source.display());
            true
        }
        Err(_) => {
            println!("SKIPPED: no {}", command[0]);
            false
        }
    }
}

impl Build {
    fn probe(&self, directory: &Path) -> Option<PathBuf> {
        let program = directory.join(self.name);
        let options = ["-O1", "-Wall", "-Wextra", "-Werror", "-pthread"];
        compile(self.compiler, &options, &probe_source("slots.c"), &program).then_some(program)
    }

    fn start(&self, program: &Path, arguments: &[&str]) -> Option<Child> {
        let mut command = match self.runner {
            [] => Command::new(program),
            [runner, rest @ ..] => {
                let mut command = Command::new(runner);
                command.args(rest).arg(program);
                command
            }
        };
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        match command.spawn() {
            Ok(child) => Some(child),
            Err(_) => {
                println!("SKIPPED: no {:?}", self.runner);
                None
            }
        }
    }
}

/// What the probe has found out.
#[derive(Default, Debug)]
struct Measured {
    /// Ways to the value of a key in a thread.
    ways: BTreeMap<(u32, u32), Vec<SlotPlace>>,
    /// Id and thread pointer of each thread.
    threads: BTreeMap<u32, (u32, u64)>,
    path: PathBuf,
    keys: u16,
}

impl Measured {
    fn read(output: impl Read) -> Measured {
        let mut measured = Measured::default();
        for line in BufReader::new(output).lines() {
            let line = line.expect("a line");
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<i64>().expect("a number");
            let way = match words[0] {
                "value" if words[3] == "inline" => SlotPlace::At(number(4) as u64),
                "value" => SlotPlace::Behind { pointer: number(4) as u64, offset: number(5) as u64 },
                "thread" => {
                    let pointer = u64::from_str_radix(words[3], 16).expect("a number");
                    measured.threads.insert(number(1) as u32, (number(2) as u32, pointer));
                    continue;
                }
                "library" => {
                    measured.path = PathBuf::from(line.strip_prefix("library ").expect("a path"));
                    continue;
                }
                "keys" => {
                    measured.keys = number(1) as u16;
                    break;
                }
                other => panic!("{other}"),
            };
            measured.ways.entry((number(1) as u32, number(2) as u32)).or_default().push(way);
        }
        measured
    }

    /// Every value lies where a layout has it.
    fn agrees(&self, layout: &SlotLayout) -> bool {
        let is_way = |((_, key), ways): (&(u32, u32), &Vec<SlotPlace>)| {
            layout.place(0, *key).is_ok_and(|place| ways.contains(&place))
        };
        self.ways.iter().all(is_way)
    }
}

/// `value_of` of probes/slots.c.
fn value_of(thread: u32, key: u32) -> u64 {
    u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(thread + 1).wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
}

#[test]
fn layouts_are_what_the_probe_measures() {
    let directory = directory("measured");
    for build in &BUILDS {
        let Some(program) = build.probe(&directory) else { continue };
        let Some(mut child) = build.start(&program, &[]) else { continue };
        let measured = Measured::read(child.stdout.take().expect("a pipe"));
        assert!(child.wait().expect("it ends").success());
        let looked_for = measured.ways.len();
        assert!(looked_for >= 22 && measured.threads.len() == 2, "{}: {measured:?}", build.name);

        let bytes = std::fs::read(&measured.path).expect("the C library");
        let found = slot::read(&bytes).unwrap_or_else(|refusal| panic!("{}: {refusal}", build.name));
        assert_eq!(found.evidence, build.evidence, "{}", build.name);
        assert_eq!(found.layout.keys, measured.keys);
        assert!(measured.agrees(&found.layout), "{}: {:?} {measured:?}", build.name, found.layout);
        // and no other layout agrees
        let wrong = |change: fn(&mut SlotLayout)| {
            let mut layout = found.layout;
            change(&mut layout);
            !measured.agrees(&layout)
        };
        assert!(wrong(|layout| layout.stride += 8) && wrong(|layout| layout.blocks += 8));
        assert!(found.layout.inline_keys == 0 || wrong(|layout| layout.inline += 8));
        assert!(found.layout.inline_keys == 0 || wrong(|layout| layout.data -= 8));
        println!("{}: {:?}, {looked_for} values of {} keys", build.name, found.layout, measured.keys);
    }
}

#[test]
fn values_of_live_threads() {
    let directory = directory("live");
    for build in BUILDS.iter().filter(|build| build.runner.is_empty()) {
        let Some(program) = build.probe(&directory) else { continue };
        let Some(mut child) = build.start(&program, &["wait"]) else { continue };
        let measured = Measured::read(child.stdout.take().expect("a pipe"));
        let slots = slot::of_process(child.id()).unwrap_or_else(|refusal| panic!("{}: {refusal}", build.name));
        assert_eq!(Path::new(&*slots.path), measured.path, "{}", build.name);
        let layout = slots.found.layout;
        let memory = ProcessMemory::open(child.id()).expect("its memory");
        for (thread, (tid, pointer)) in &measured.threads {
            let registers = of_thread(*tid, Patience::default()).expect("it stops").registers;
            assert_eq!(registers.thread_pointer, *pointer);
            let value = |key| layout.value(&memory, *pointer, key);
            for (_, key) in measured.ways.keys().filter(|(of, _)| of == thread) {
                assert_eq!(value(*key).expect("readable"), value_of(*thread, *key), "{} {key}", build.name);
            }
            assert_eq!(value(10).expect("readable"), 0, "a key that has no value");
            value(u32::from(layout.keys)).expect_err("no such key");
            value(u32::MAX).expect_err("no such key");
            if layout.inline_keys > 0 {
                assert_eq!(layout.address(&memory, *pointer, 300).expect("readable"), None, "no block");
                assert_eq!(value(300).expect("readable"), 0);
            }
        }
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
    }
}

#[test]
fn processes_without_a_c_library() {
    let gone = slot::of_process(u32::MAX);
    assert!(matches!(gone, Err(ProcessSlotRefusal::Mappings { .. })), "{gone:?}");

    let directory = directory("bare");
    let (source, program) = (directory.join("bare.c"), directory.join("bare"));
    std::fs::write(&source, "void _start(void) { for (;;) __asm__ volatile(\"\"); }").expect("written");
    if !compile(&["cc"], &["-nostdlib", "-static", "-O1"], &source, &program) {
        return;
    }
    let mut child = Command::new(&program).spawn().expect("it starts");
    // an exec is over for who waits for it before there are new mappings
    let bare = loop {
        match slot::of_process(child.id()) {
            Err(ProcessSlotRefusal::Mappings { end: MapsEnd::Complete | MapsEnd::NoMemory, .. }) => {}
            result => break result,
        }
    };
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let Err(refusal) = bare else { panic!("{bare:?}") };
    assert!(matches!(refusal, ProcessSlotRefusal::NoLibrary { .. }), "{refusal}");
}

/// Compilers of a stub, and what the thread pointer is less than for them.
const COMPILERS: [(&[&str], i32); 4] = [
    (&["cc"], 0),
    (&["clang-14"], 0),
    (&["aarch64-linux-gnu-gcc"], 0x7f0),
    (&["clang-14", "--target=aarch64-linux-gnu"], 0x7f0),
];

const WAYS: [&[&str]; 9] = [
    &["-O0"],
    &["-O1"],
    &["-O2"],
    &["-O3"],
    &["-Os"],
    &["-O2", "-fno-omit-frame-pointer"],
    &["-O1", "-fno-omit-frame-pointer", "-fno-inline"],
    &["-O2", "-fno-pic"],
    &["-O2", "HARDENED"],
];

/// A stub's bytes; `None` without the compiler.
fn stub(directory: &Path, compiler: &[&str], way: &[&str], defines: &[&str]) -> Option<Vec<u8>> {
    let is_arm = compiler.iter().any(|word| word.contains("aarch64"));
    let hardened = if is_arm { "-mbranch-protection=standard" } else { "-fcf-protection" };
    let mut arguments: Vec<&str> = way.iter().map(|word| if *word == "HARDENED" { hardened } else { *word }).collect();
    arguments.extend(["-shared", "-fPIC", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-w"]);
    if compiler[0].starts_with("clang") {
        arguments.push("-fuse-ld=lld");
        let linkers = ["/usr/bin/ld.lld", "/usr/bin/ld.lld-14"].map(|path| Path::new(path).exists());
        if is_arm && !linkers.contains(&true) {
            println!("SKIPPED: no ld.lld");
            return None;
        }
        if !linkers.contains(&true) {
            arguments.pop();
        }
    }
    arguments.extend(defines);
    let library = directory.join("stub.so");
    compile(compiler, &arguments, &probe_source("stubs.c"), &library)
        .then(|| std::fs::read(&library).expect("the library"))
}

#[test]
fn arrays_behind_a_pointer_compiled_in_many_ways() {
    let directory = directory("pointer");
    for (compiler, size) in COMPILERS {
        for way in WAYS {
            for pointer in if way == ["-O2"] { &[24, 128, 0x7f8, 0x1010][..] } else { &[88] } {
                let defines = [format!("-DPOINTER={pointer}"), format!("-DSIZE={size}")];
                let Some(bytes) = stub(&directory, compiler, way, &defines.each_ref().map(|define| define.as_str()))
                else {
                    continue;
                };
                let found = slot::read(&bytes).unwrap_or_else(|refusal| panic!("{compiler:?} {way:?}: {refusal}"));
                assert_eq!(found.evidence, SlotEvidence::GetAndSet);
                let blocks = pointer - size;
                let expected = SlotLayout {
                    inline: 0,
                    blocks,
                    stride: 8,
                    data: 0,
                    inline_keys: 0,
                    keys_per_block: 128,
                    keys: 128,
                };
                assert_eq!(found.layout, expected, "{compiler:?} {way:?}");
            }
        }
    }
}

#[test]
fn blocks_compiled_in_many_ways() {
    let directory = directory("blocks");
    for (compiler, size) in COMPILERS {
        let first = if size == 0 { 784 } else { 272 };
        for way in WAYS {
            for moved in [0, 16] {
                let defines = ["-DINLINE".to_owned(), format!("-DFIRST={}", first + moved), format!("-DSIZE={size}")];
                let Some(bytes) = stub(&directory, compiler, way, &defines.each_ref().map(|define| define.as_str()))
                else {
                    continue;
                };
                let expected = SlotLayout {
                    inline: first + moved - size + 8,
                    blocks: first + moved - size + 512,
                    stride: 16,
                    data: 8,
                    inline_keys: 32,
                    keys_per_block: 32,
                    keys: 1024,
                };
                // a moved one is read as well on x86_64, but was never measured
                match slot::read(&bytes) {
                    Ok(found) => {
                        assert_eq!((found.layout, found.evidence), (expected, SlotEvidence::CodeAndMeasured));
                        assert!(moved == 0 || size != 0);
                    }
                    Err(SlotRefusal::UnknownLibrary { read }) => {
                        assert_eq!((read, moved, size), (expected, 16, 0), "{compiler:?} {way:?}");
                    }
                    Err(refusal) => panic!("{compiler:?} {way:?}: {refusal}"),
                }
            }
        }
    }
}

/// C libraries on this machine.
const LIBRARIES: [&str; 4] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/aarch64-linux-gnu/lib/libc.so.6",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// Where in a file the bytes of symbols with these beginnings are.
fn places(bytes: &[u8], names: &[&str]) -> Vec<usize> {
    use object::{Object, ObjectSegment, ObjectSymbol};
    let file = object::File::parse(bytes).expect("an executable");
    let symbols = file.dynamic_symbols().filter(|symbol| {
        symbol.is_definition() && names.iter().any(|name| symbol.name().is_ok_and(|of| of.starts_with(name)))
    });
    let mut places: Vec<usize> = symbols
        .flat_map(|symbol| {
            let segment = file
                .segments()
                .find(|segment| (segment.address()..segment.address() + segment.size()).contains(&symbol.address()))
                .expect("a segment");
            let begin = (symbol.address() - segment.address() + segment.file_range().0) as usize;
            begin..begin + symbol.size() as usize
        })
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Changes every byte at these places in a few ways; the result is the same or a refusal, one of which is `expected`.
fn corrupt(library: &str, names: &[&str], ways: &[u8], expected: fn(&SlotRefusal) -> bool) {
    let Ok(mut bytes) = std::fs::read(library) else { return println!("NOT HERE: no {library}") };
    let right = slot::read(&bytes).expect("readable").layout;
    let places = places(&bytes, names);
    let (mut refused, mut same, mut is_among) = (0, 0, false);
    for place in &places {
        let before = bytes[*place];
        for way in ways {
            bytes[*place] = before ^ way;
            match slot::read(&bytes) {
                Ok(found) => {
                    assert_eq!(found.layout, right, "{library}: {place:#x} {before:#x} {way:#x}");
                    same += 1;
                }
                Err(refusal) => {
                    refused += 1;
                    is_among |= expected(&refusal);
                }
            }
        }
        bytes[*place] = before;
    }
    assert!(!places.is_empty() && is_among);
    println!("{library}: {} bytes of {names:?}: {refused} refused, {same} the same", places.len());
}

#[test]
fn corrupted_code_is_refused_or_means_the_same() {
    let ways = [0x01, 0x04, 0x10, 0x80, 0xff];
    for library in LIBRARIES {
        let differs = match library.contains("musl") {
            true => |refusal: &SlotRefusal| matches!(refusal, SlotRefusal::GetAndSetDiffer { .. }),
            false => |refusal: &SlotRefusal| matches!(refusal, SlotRefusal::Contradiction { .. }),
        };
        corrupt(library, &["pthread_getspecific"], &ways, differs);
    }
}

#[test]
fn corrupted_descriptors_are_refused_or_mean_the_same() {
    for library in &LIBRARIES[..2] {
        let names = ["_thread_db_pthread_specific", "_thread_db_pthread_key_data", "_thread_db_sizeof_pthread"];
        corrupt(library, &names, &[0x01, 0x80], |refusal| *refusal == SlotRefusal::Descriptors);
    }
}

/// Descriptors that were never measured, and code that is not understood.
#[test]
fn nothing_confirms_what_is_not_known() {
    for library in &LIBRARIES[..2] {
        let Ok(mut bytes) = std::fs::read(library) else {
            println!("NOT HERE: no {library}");
            continue;
        };
        for place in places(&bytes, &["pthread_getspecific"]) {
            bytes[place] = 0xff;
        }
        let right = slot::read(&bytes).expect("the descriptors suffice");
        assert_eq!(right.evidence, SlotEvidence::DescriptorsAndMeasured);
        // the offset of the pointers, 16 bytes further
        let offset = places(&bytes, &["_thread_db_pthread_specific"])[8];
        bytes[offset] += 16;
        let moved = slot::read(&bytes);
        assert!(matches!(moved, Err(SlotRefusal::Unconfirmed { said, .. }) if said.blocks == right.layout.blocks + 16));
    }
}

#[test]
fn two_libraries_that_differ() {
    let directory = directory("two");
    let source = directory.join("idle.c");
    std::fs::write(&source, "#include <unistd.h>\nint main(void) { for (;;) pause(); }").expect("written");
    let Some(stub) = stub(&directory, &["cc"], &["-O2"], &["-DPOINTER=1000", "-DSIZE=0"]) else { return };
    let (library, program) = (directory.join("libother.so"), directory.join("idle"));
    std::fs::write(&library, stub).expect("written");
    let at = [format!("-L{}", directory.display()), format!("-Wl,-rpath,{}", directory.display())];
    if !compile(&["musl-gcc"], &[&at[0], &at[1], "-Wl,--no-as-needed", "-lother"], &source, &program) {
        return;
    }
    let mut child = Command::new(&program).spawn().expect("it starts");
    let result = loop {
        match slot::of_process(child.id()) {
            // it has not loaded both yet
            Ok(_) | Err(ProcessSlotRefusal::Mappings { .. } | ProcessSlotRefusal::NoLibrary { .. }) => {}
            Err(refusal) => break refusal,
        }
    };
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(matches!(result, ProcessSlotRefusal::Ambiguous { .. }), "{result}");
}

#[test]
fn files_that_are_no_library() {
    let own = std::fs::read(std::env::current_exe().expect("a program")).expect("readable");
    assert_eq!(slot::read(&own), Err(SlotRefusal::NoLibrary));
    for bytes in [&b""[..], b"\x7fELF", &own[..64], &own[..4096], include_bytes!("slot.rs")] {
        assert_eq!(slot::read(bytes), Err(SlotRefusal::NoLibrary));
    }
    let narrow = slot::read_at(&own, 0x10);
    assert!(matches!(narrow, Err(SlotRefusal::Code(_))), "{narrow:?}");
}
