//! Threads, stacks, frames and samples.

use crate::Meta;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in its list.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        })*
    };
}

ids! {
    /// A string of the profile; see [`Profile::text`].
    Text;
    /// Position in [`Profile::modules`].
    ModuleId;
    /// Position in [`Profile::functions`].
    FunctionId;
    /// Position in [`Profile::frames`].
    FrameId;
    /// Position in [`Profile::nodes`].
    NodeId;
    /// Position in [`Profile::processes`].
    ProcessId;
    /// Position in [`Profile::threads`].
    ThreadId;
}

/// What kind of code a function is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Kernel.
    Kernel,
    /// Compiled ahead of time: C, C++, Rust, Go, ...
    Native,
    /// Compiled while the program runs, named by a perf map or not at all.
    Jit,
    /// A Python function that CPython's interpreter runs. Its name is the qualified one, its file `co_filename`, its first line
    /// `co_firstlineno`; it is in no module.
    Python,
    /// Not a function: why a stack stops, or that frames were left out. Shown in brackets.
    Marker,
}

impl Kind {
    /// Every kind, in the order of their legend.
    pub const ALL: &'static [Kind] = &[Kind::Kernel, Kind::Native, Kind::Jit, Kind::Python, Kind::Marker];

    /// Word for legends and for formats that name kinds.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::Native => "native",
            Kind::Jit => "jit",
            Kind::Python => "python",
            Kind::Marker => "marker",
        }
    }
}

/// An executable file, the kernel, or another source of code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Module {
    /// Full path where there is one, else a name in brackets such as `[kernel]`.
    pub path: Text,
    /// Build-id as lower-case hexadecimal digits, where there is one.
    pub build_id: Option<Text>,
}

/// A function; two of one name in two files or modules stay apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FunctionKey {
    /// Demangled name; a bracketed text for markers and for what has no name (`[libfoo.so+0x1234]`).
    pub name: Text,
    /// What it is.
    pub kind: Kind,
    /// Source file that defines it, where known.
    pub file: Option<Text>,
    /// Its first line there; 0 = not known.
    pub start_line: u32,
    /// The module it is in.
    pub module: Option<ModuleId>,
}

/// How a frame was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FoundBy {
    /// It is the interrupted one, or its callee's unwind information led to it.
    UnwindInfo,
    /// The callee had no unwind information and its frame pointer led here.
    FramePointer,
}

/// A frame; equal frames share one id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FrameKey {
    /// Its function.
    pub function: FunctionId,
    /// Current source line; 0 = not known.
    pub line: u32,
    /// Offset in the module's file; for code that is in no file, the address. For an inlined frame that of the
    /// function it was inlined into.
    pub offset: u64,
    /// It was inlined into the frame that follows towards the root.
    pub inlined: bool,
    /// How it was found.
    pub found_by: FoundBy,
}

impl FrameKey {
    /// A frame of which only the function is known.
    pub fn of(function: FunctionId) -> FrameKey {
        FrameKey { function, line: 0, offset: 0, inlined: false, found_by: FoundBy::UnwindInfo }
    }
}

/// A stack: a frame and the stack of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StackNode {
    /// The caller's node; `None` for the outermost frame. Always a smaller id than the node's own.
    pub parent: Option<NodeId>,
    /// The frame.
    pub frame: FrameId,
}

/// A process; one per (pid, start), so a pid that was used twice is two of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name (comm) of its main thread, last seen.
    pub name: Text,
    /// Command line with its arguments joined by blanks, where it was read.
    pub command_line: Option<Text>,
}

/// A thread under one name; a thread that changed its name is two of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Its process.
    pub process: ProcessId,
    /// Thread id.
    pub tid: u32,
    /// Name (comm).
    pub name: Text,
}

/// How often a stack was seen in a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The thread.
    pub thread: ThreadId,
    /// The innermost frame's node; `None` for an empty stack.
    pub stack: Option<NodeId>,
    /// How many samples.
    pub count: u64,
}

/// A whole profile. Made by [`Builder`](crate::Builder); ids index the lists.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// About the recording.
    pub meta: Meta,
    /// Strings, each once.
    pub texts: Vec<String>,
    /// Modules.
    pub modules: Vec<Module>,
    /// Functions.
    pub functions: Vec<FunctionKey>,
    /// Frames.
    pub frames: Vec<FrameKey>,
    /// Prefix tree of stacks; a parent comes before its children.
    pub nodes: Vec<StackNode>,
    /// Processes.
    pub processes: Vec<Process>,
    /// Threads.
    pub threads: Vec<Thread>,
    /// Samples; a (thread, stack) pair occurs once.
    pub samples: Vec<Sample>,
}

impl Profile {
    /// The text of an id.
    pub fn text(&self, text: Text) -> &str {
        &self.texts[text.index()]
    }

    /// All samples together; `u64::MAX` if they are more.
    pub fn total(&self) -> u64 {
        self.samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.count))
    }

    /// The function of a frame.
    pub fn function_of(&self, frame: FrameId) -> &FunctionKey {
        &self.functions[self.frames[frame.index()].function.index()]
    }

    /// The frames of a stack, innermost first.
    pub fn frames_of(&self, stack: Option<NodeId>) -> impl Iterator<Item = FrameId> {
        let mut at = stack;
        std::iter::from_fn(move || {
            let node = self.nodes[at?.index()];
            at = node.parent;
            Some(node.frame)
        })
    }

    /// What a frame is called in a picture: the function's name, with `(file:LINE)` behind it where
    /// `with_lines` asks for it and the line is known. A Python function has its `(file)` behind it in any case, for names
    /// such as `<module>` and `__init__` say little without it. The file is that of [`file_name`].
    pub fn label(&self, frame: FrameId, with_lines: bool) -> String {
        let key = &self.frames[frame.index()];
        let function = &self.functions[key.function.index()];
        let name = self.text(function.name);
        match function.file.map(|file| file_name(self.text(file))) {
            Some(file) if with_lines && key.line != 0 => format!("{name} ({file}:{})", key.line),
            Some(file) if function.kind == Kind::Python && !file.is_empty() => format!("{name} ({file})"),
            _ => name.to_owned(),
        }
    }
}

/// The last part of the path of a source file. What stands in angle brackets is no path and stays whole: `<string>`,
/// `<frozen importlib._bootstrap>`; so does what ends in `/`.
pub fn file_name(path: &str) -> &str {
    let bracketed = path.starts_with('<') && path.ends_with('>');
    match path.rsplit('/').next() {
        Some(last) if !last.is_empty() && !bracketed => last,
        _ => path,
    }
}

#[cfg(test)]
mod tests;
