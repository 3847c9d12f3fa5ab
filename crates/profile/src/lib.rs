//! The model of a profile, between attribution and the output formats.
//!
//! Nothing here is a joined string: a stack is a path in a prefix tree of frames, a frame is a function with a
//! line, an address and a module, a function has a kind, a name and a file. Formats turn that into whatever they
//! need; they know nothing else.
//!
//! ```
//! use profile::{Builder, FrameKey, FunctionKey, Kind};
//! let mut builder = Builder::default();
//! let name = builder.text("main");
//! let function = builder.function(FunctionKey { name, kind: Kind::Native, file: None, start_line: 0, module: None });
//! let frame = builder.frame(FrameKey::of(function));
//! let stack = builder.stack([frame]);
//! let process = builder.process(1, "init");
//! let thread = builder.thread(process, 1, "init");
//! builder.add(thread, stack, 3);
//! let profile = builder.finish();
//! assert_eq!(profile.total(), 3);
//! ```

mod builder;
mod meta;
mod model;

pub use builder::Builder;
pub use meta::{Losses, Meta, ProcessStatus, StopCount};
pub use model::{
    FoundBy, FrameId, FrameKey, FunctionId, FunctionKey, Kind, Module, ModuleId, NodeId, Process, ProcessId, Profile,
    Sample, StackNode, Text, Thread, ThreadId, file_name,
};
