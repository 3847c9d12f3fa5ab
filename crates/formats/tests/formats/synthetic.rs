//! A profile that has one of everything: kinds, inlining, threads, markers, lines, and names that attack.

use std::time::{Duration, UNIX_EPOCH};

use profile::{
    Builder, FrameId, FrameKey, FunctionKey, Kind, Losses, Module, ModuleId, ProcessStatus, Profile, StopCount,
    ThreadId,
};

/// What is said of an interpreter.
pub const INTERPRETER: &str = "pid 6000 python 3.12.1 libpython3.12.so: key 0 at _PyRuntime+0x608 [code, table, live]; \
                               1,204 stacks, 0 refused";

/// Names that try to break out of a format.
pub const HOSTILE: &[&str] = &[
    "</title><script>alert(1)</script>",
    "]]><script>alert(2)</script>",
    "\" onload=\"alert(3)",
    "' onclick='alert(4)",
    "<!-- -- -->",
    "<?xml version=\"1.1\"?><!DOCTYPE x [<!ENTITY y \"z\">]>&y;&#0;",
    "a;b;c",
    "a 12",
    "a 1.5",
    " leading and trailing ",
    "# comment",
    "line\nfeed\r\ttab",
    "\x1b[31mred\x1b[0m\x07\0",
    "\u{9b}31m\u{80}\u{81}\u{82}\u{83}\u{90}",
    "\u{202e}desrever\u{2028}\u{feff}\u{ffff}\u{fffe}",
    "back\\slash \\u{3b}",
    "native_[k]",
    "[native in brackets]",
    "",
    "日本語 и 🦀",
    "${jndi:x} {{x}} %s %n `x` $(x)",
    "https://example.com/?a=b&c=d",
    // as CPython would escape and print what no UTF-8 can hold
    "caf\\udce9 \u{fffd}\u{fffd}/\u{fffd}.py",
    "<frozen a;b\n/c>",
    "f (a.py:12)",
];

/// Where a frame is.
#[derive(Clone, Copy, Default)]
pub struct At<'a> {
    pub module: Option<ModuleId>,
    pub offset: u64,
    /// File, first line of the function, current line.
    pub source: Option<(&'a str, u32, u32)>,
    pub inlined: bool,
}

/// Adds things with less writing.
#[derive(Default)]
pub struct Author {
    pub builder: Builder,
}

impl Author {
    pub fn module(&mut self, path: &str, build_id: Option<&str>) -> ModuleId {
        let path = self.builder.text(path);
        let build_id = build_id.map(|id| self.builder.text(id));
        self.builder.module(Module { path, build_id })
    }

    pub fn frame(&mut self, name: &str, kind: Kind, at: At<'_>) -> FrameId {
        let name = self.builder.text(name);
        let file = at.source.map(|(file, _, _)| self.builder.text(file));
        let (start_line, line) = at.source.map_or((0, 0), |(_, start, line)| (start, line));
        let function = self.builder.function(FunctionKey { name, kind, file, start_line, module: at.module });
        self.builder.frame(FrameKey { line, offset: at.offset, inlined: at.inlined, ..FrameKey::of(function) })
    }

    /// A thread of a process of its own.
    pub fn task(&mut self, pid: u32, process: &str, thread: &str) -> ThreadId {
        let process = self.builder.process(pid, process);
        self.builder.thread(process, pid, thread)
    }

    pub fn add(&mut self, thread: ThreadId, stack: &[FrameId], count: u64) {
        let stack = self.builder.stack(stack.iter().copied());
        self.builder.add(thread, stack, count);
    }
}

fn meta(author: &mut Author) {
    let meta = author.builder.meta_mut();
    meta.version = "0.1.0".to_owned();
    meta.command_line = "wholestack record --duration 10 -o profile.html".to_owned();
    meta.target = "whole machine".to_owned();
    meta.host = "box".to_owned();
    meta.kernel = "6.8.0 x86_64".to_owned();
    meta.start = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    meta.duration = Duration::from_millis(10_020);
    meta.frequency = 100;
    meta.event = "cpu-clock".to_owned();
    meta.losses = vec![Losses { cause: "ring buffer full".to_owned(), count: 3 }];
    meta.stops = vec![
        StopCount { reason: "root".to_owned(), whole: true, count: 900 },
        StopCount { reason: "[no unwind row]".to_owned(), whole: false, count: 40 },
    ];
    let stops = vec![StopCount { reason: "root".to_owned(), whole: true, count: 240 }];
    meta.statuses = vec![ProcessStatus { pid: 5000, name: "node".to_owned(), samples: 240, stops }];
    meta.interpreters = vec![INTERPRETER.to_owned()];
}

/// A web server: native code with inlined functions, the kernel below it.
fn server(author: &mut Author) {
    let server = author.module("/usr/sbin/server", Some("0123456789abcdef0123456789abcdef01234567"));
    let libc = author.module("/usr/lib/x86_64-linux-gnu/libc.so.6", Some("89abcdef0123456789abcdef0123456789abcdef"));
    let kernel = author.module("[kernel]", None);
    let native = |author: &mut Author, name, module, offset, source| {
        author.frame(name, Kind::Native, At { module: Some(module), offset, source, inlined: false })
    };
    let start = native(author, "_start", server, 0x1040, None);
    let main = native(author, "main", server, 0x1180, Some(("/src/server/main.c", 20, 31)));
    let parse = native(author, "http::parse(std::string_view)", server, 0x1290, Some(("/src/server/http.cc", 5, 17)));
    let skip = author.frame(
        "http::skip_blanks(char const*)",
        Kind::Native,
        At { module: Some(server), offset: 0x1290, source: Some(("/src/server/http.h", 40, 44)), inlined: true },
    );
    let peek = author.frame(
        "http::peek",
        Kind::Native,
        At { module: Some(server), offset: 0x1290, source: Some(("/src/server/http.h", 12, 13)), inlined: true },
    );
    let read = native(author, "read", libc, 0x11_4a40, None);
    let in_kernel = |author: &mut Author, name, offset| {
        author.frame(name, Kind::Kernel, At { module: Some(kernel), offset, ..At::default() })
    };
    let entry = in_kernel(author, "entry_SYSCALL_64", 0xffff_ffff_81e0_0087);
    let vfs = in_kernel(author, "vfs_read", 0xffff_ffff_8132_1234);
    let copy = in_kernel(author, "copy_page_to_iter", 0xffff_ffff_8155_0010);
    let process = author.builder.process(4711, "server");
    let first = author.builder.thread(process, 4711, "server");
    let worker = author.builder.thread(process, 4712, "worker 1");
    author.add(first, &[start, main], 40);
    author.add(first, &[start, main, parse], 120);
    author.add(first, &[start, main, parse, skip, peek], 210);
    author.add(first, &[start, main, read, entry, vfs], 60);
    author.add(first, &[start, main, read, entry, vfs, copy], 140);
    author.add(worker, &[start, main, parse, skip], 90);
    author.add(worker, &[], 2);
}

/// A runtime with code made while it runs, and stacks that end early.
fn runtime(author: &mut Author) {
    let node = author.module("/usr/bin/node", None);
    let start = author.frame("node::Start", Kind::Native, At { module: Some(node), offset: 0x9_0000, ..At::default() });
    let jit = |author: &mut Author, name, offset| author.frame(name, Kind::Jit, At { offset, ..At::default() });
    let handler = jit(author, "LazyCompile:*handler /srv/app.js:10:3", 0x7f12_3456_7000);
    let render = jit(author, "LazyCompile:*render /srv/app.js:44:9", 0x7f12_3456_8100);
    let stop = author.frame("[no unwind row]", Kind::Marker, At::default());
    let thread = author.task(5000, "node", "node");
    author.add(thread, &[start, handler], 30);
    author.add(thread, &[start, handler, render], 170);
    author.add(thread, &[stop, render], 40);
}

/// A web application in Python: native code below it, between its functions and above them, and the kernel.
fn interpreter(author: &mut Author) {
    let library = author.module("/usr/lib/libpython3.12.so.1.0", Some("00112233445566778899aabbccddeeff00112233"));
    let zlib = author.module("/usr/lib/x86_64-linux-gnu/libz.so.1", None);
    let kernel = author.module("[kernel]", None);
    let native = |author: &mut Author, name, module, offset| {
        author.frame(name, Kind::Native, At { module: Some(module), offset, ..At::default() })
    };
    let python = |author: &mut Author, name, source| {
        // where its code object lies, which is no place in a file
        author.frame(name, Kind::Python, At { offset: 0x7f33_0000_1230, source: Some(source), ..At::default() })
    };
    let start = native(author, "Py_BytesMain", library, 0x2_9000);
    let module = python(author, "<module>", ("/srv/app/main.py", 1, 40));
    let import = python(author, "_find_and_load", ("<frozen importlib._bootstrap>", 1349, 0));
    let [handle, later] = [30, 31].map(|line| python(author, "Handler.handle", ("/srv/app/web.py", 12, line)));
    let helpers = ["/srv/app/util.py", "/srv/app/other.py"].map(|file| python(author, "helper", (file, 3, 5)));
    let sort = native(author, "list_sort_impl", library, 0x8_4000);
    let lambdas = [41, 57].map(|line| python(author, "<lambda>", ("/srv/app/web.py", line, line)));
    let compress = native(author, "deflate_slow", zlib, 0x4400);
    let receive = native(author, "sock_recv_guts", library, 0x12_0000);
    let at = At { module: Some(kernel), offset: 0xffff_ffff_81e0_0087, ..At::default() };
    let entry = author.frame("entry_SYSCALL_64", Kind::Kernel, at);
    let thread = author.task(6000, "gunicorn", "gunicorn");
    author.add(thread, &[start, module, import], 15);
    author.add(thread, &[start, module, handle], 50);
    author.add(thread, &[start, module, later], 5);
    author.add(thread, &[start, module, handle, helpers[0]], 60);
    author.add(thread, &[start, module, handle, helpers[1]], 25);
    author.add(thread, &[start, module, handle, sort, lambdas[0]], 10);
    author.add(thread, &[start, module, handle, sort, lambdas[1]], 20);
    author.add(thread, &[start, module, later, compress], 80);
    author.add(thread, &[start, module, handle, receive, entry], 35);
}

/// One process, thread, function, file and module per hostile name.
fn hostile(author: &mut Author) {
    for (at, name) in HOSTILE.iter().enumerate() {
        let module = author.module(name, Some(name));
        let thread = author.task(9000 + at as u32, name, name);
        let stack: Vec<FrameId> = Kind::ALL
            .iter()
            .map(|kind| {
                author.frame(
                    name,
                    *kind,
                    At {
                        module: Some(module),
                        offset: u64::MAX - at as u64,
                        source: Some((name, 1, u32::MAX)),
                        inlined: at % 2 == 0,
                    },
                )
            })
            .collect();
        author.add(thread, &stack, 7);
    }
}

/// The profile with friendly names only.
pub fn friendly() -> Profile {
    let mut author = Author::default();
    meta(&mut author);
    server(&mut author);
    runtime(&mut author);
    interpreter(&mut author);
    author.builder.finish()
}

/// The profile with hostile names too, in its description as well.
pub fn whole() -> Profile {
    let mut author = Author::default();
    meta(&mut author);
    server(&mut author);
    runtime(&mut author);
    interpreter(&mut author);
    hostile(&mut author);
    let meta = author.builder.meta_mut();
    meta.command_line = HOSTILE.join(" ");
    meta.target = HOSTILE[..4].join(" ");
    meta.event = HOSTILE[12].to_owned();
    meta.losses.push(Losses { cause: HOSTILE[12].to_owned(), count: u64::MAX });
    for (pid, name) in (9000..).zip(HOSTILE) {
        let stops = vec![StopCount { reason: (*name).to_owned(), whole: false, count: 7 }];
        meta.statuses.push(ProcessStatus { pid, name: (*name).to_owned(), samples: 7, stops });
        meta.interpreters.push(format!("pid {pid} python 3.12.1 {name}: refused"));
    }
    author.builder.finish()
}
