//! Profiles for the page, and what their figures must be, computed another way.

use std::collections::{BTreeMap, BTreeSet};

use profile::{Builder, FrameId, FrameKey, FunctionKey, Kind, Module, Profile, Sample};

/// Numbers that look random and are the same every time (xorshift).
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A frame of a function that is known by its name.
pub fn frame(builder: &mut Builder, name: &str, kind: Kind) -> FrameId {
    let path = builder.text(if kind == Kind::Kernel { "[kernel]" } else { "/usr/lib/libsample.so.1" });
    let module = Some(builder.module(Module { path, build_id: None }));
    let name = builder.text(name);
    let file = Some(builder.text("src/sample.c"));
    let function = builder.function(FunctionKey { name, kind, file, start_line: 10, module });
    builder.frame(FrameKey::of(function))
}

/// The same frame as inlined, or at another line.
pub fn variant(builder: &mut Builder, name: &str, kind: Kind, inlined: bool, line: u32) -> FrameId {
    let base = frame(builder, name, kind);
    // the builder interns: it gives the function of the frame back only with a frame of its own
    let function = builder_function(builder, name, kind);
    if !inlined && line == 0 {
        return base;
    }
    builder.frame(FrameKey { line, inlined, ..FrameKey::of(function) })
}

fn builder_function(builder: &mut Builder, name: &str, kind: Kind) -> profile::FunctionId {
    let path = builder.text(if kind == Kind::Kernel { "[kernel]" } else { "/usr/lib/libsample.so.1" });
    let module = Some(builder.module(Module { path, build_id: None }));
    let name = builder.text(name);
    let file = Some(builder.text("src/sample.c"));
    builder.function(FunctionKey { name, kind, file, start_line: 10, module })
}
