//! The proof on a live interpreter, and what must refute it.

mod interpreters;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use objects::Image;
use processes::maps::{self, Wanted};
use processes::memory::ProcessMemory;
use processes::thread_pointer::{Patience, of_threads};
use processes::{MAX_RANGES, MappedRange, Proc};
use python::facts::PythonFacts;
use python::file::PythonFile;
use python::prove::{Effort, Thread, prove};
use python::refusal::Step;
use python::slot::LibrarySearch;
use python::way::Library;
use python::{Memory, Ready, Refusal, Subject, Unreadable, examine};

const SCRIPT: &str = "import os, threading, time
for _ in range(2): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
time.sleep(0.2)
os.write(1, b'READY\\n')
time.sleep(1000)";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process's memory, with other words at some addresses.
struct Changed<'a> {
    memory: &'a ProcessMemory,
    words: Vec<(u64, u64)>,
}

impl Memory for Changed<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        Memory::read(self.memory, address, into)?;
        for (at, byte) in (address..).zip(into) {
            if let Some((begin, word)) = self.words.iter().find(|(begin, _)| (*begin..begin + 8).contains(&at)) {
                *byte = word.to_le_bytes()[(at - begin) as usize];
            }
        }
        Ok(())
    }
}

/// The images that a process maps, with the bias of each.
fn images(pid: u32, ranges: &[MappedRange]) -> Vec<(Image, u64)> {
    let mut seen = Vec::new();
    let mut images = Vec::new();
    for range in ranges.iter().filter(|range| range.executable && range.kind() == processes::RangeKind::File) {
        if seen.contains(&range.path) {
            continue;
        }
        seen.push(range.path.clone());
        let Ok(opened) = processes::object_file::open_mapped_file(pid, range) else { continue };
        let Ok(image) = Image::open(&opened.file) else { continue };
        let Some(bias) = image.load_bias(range.start, range.file_offset) else { continue };
        images.push((image, bias));
    }
    images
}

/// Starts the newest interpreter that keeps states under a key, and calls `test` with what it takes to examine and prove it.
fn with_interpreter(test: impl FnOnce(&dyn Fn(bool) -> Result<Ready, Refusal>, &ProcessMemory, &[Thread])) {
    let keyed = interpreters::all().into_iter().rfind(|interpreter| interpreter.version.minor < 15);
    let Some(interpreter) = keyed else { return println!("SKIPPED: no CPython here") };
    let mut child = interpreter.place.command().args(["-c", SCRIPT]).stdout(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let running = Running(child);
    let pid = running.0.id();
    let (ranges, _) = maps::read(&Proc::system(), pid, Wanted::All, MAX_RANGES);
    let memory = ProcessMemory::open(pid).expect("its memory");
    let images = images(pid, &ranges);
    let tids = Proc::system().tids(pid).expect("threads");
    let threads: Vec<Thread> = of_threads(&tids, Patience::default())
        .into_iter()
        .zip(&tids)
        .map(|(looked, tid)| {
            let thread_pointer = looked.expect("registers").registers.thread_pointer;
            Thread { tid: *tid, native: Some(*tid), thread_pointer }
        })
        .collect();
    let examined = |has_libc: bool| {
        let (image, bias) = images
            .iter()
            .find(|(image, _)| PythonFile::parse(image.bytes()).is_ok_and(|file| file.identify().is_some()))
            .expect("an interpreter");
        let file = PythonFile::parse(image.bytes()).expect("a file");
        let facts = PythonFacts::of(&file, file.identify().expect("a CPython"));
        let mut search = LibrarySearch::default();
        if has_libc {
            images.iter().for_each(|(image, _)| search.look_at("".as_ref(), image.bytes()));
        }
        let libc = Library::found(search.result(), file.architecture());
        examine(&Subject { facts: &facts, bias: *bias, memory: &memory, libc }).result
    };
    test(&examined, &memory, &threads);
}

#[test]
fn a_live_interpreter_is_proven_and_changed_ones_are_refused() {
    with_interpreter(|examined, memory, threads| {
        let ready = examined(true).expect("examined");
        let noted = prove(&ready, memory, threads, &Effort::FULL).expect("proven");
        assert_eq!((noted.step, noted.result.as_str()), (Step::Threads, "3 of 3 have a state of their own"));

        assert_eq!(examined(false).err(), Some(Refusal::NoLibrary));
        assert_eq!(prove(&ready, memory, &[], &Effort::FULL), Err(Refusal::NoThread));

        let slots = &ready.libc.slots;
        let key = ready.key.expect("a key");
        let slot = |thread: &Thread, key| {
            slots.address(memory, thread.thread_pointer, key).expect("readable").expect("in the first block")
        };
        let [first, second, third] = threads else { panic!("three threads") };
        // nobody has a state
        let emptied = threads.iter().map(|thread| (slot(thread, key), 0)).collect();
        let emptied = Changed { memory, words: emptied };
        assert_eq!(prove(&ready, &emptied, threads, &Effort::FULL), Err(Refusal::NoState { threads: 3 }));

        // everybody has somebody else's
        let state = |thread: &Thread| memory.u64(slot(thread, key)).expect("readable");
        let turned = [(first, second), (second, third), (third, first)];
        let turned = turned.iter().map(|(of, to)| (slot(of, key), state(to))).collect();
        let refused = prove(&ready, &Changed { memory, words: turned }, threads, &Effort::FULL);
        assert!(refused.as_ref().is_err_and(|refusal| refusal.name() == "layout-disagrees"), "{refused:?}");

        // another key leads to another state that says that it is this thread's
        let other = key + 1;
        let thread_id = u64::from(ready.layout.thread.thread_id);
        let two = vec![(slot(first, other), state(second)), (state(second) + thread_id, first.thread_pointer)];
        assert_eq!(
            prove(&ready, &Changed { memory, words: two }, threads, &Effort::FULL),
            Err(Refusal::OtherKey { key, other })
        );
    });
}
