//! Frames by address: named in batches, then put together into stacks.

use abi::word::Word;
use profile::{Builder, FoundBy, FrameId, FrameKey, FunctionKey, Kind, Module, ModuleId, NodeId};
use rustc_hash::FxHashMap;
use symbols::{KernelNamer, NamedFile, Reason};

use crate::native::{self, Job};
use crate::python_frames::{PythonFrames, fault_text};
use crate::wanted::{Wanted, lookup};
use crate::{Object, RawSample, Sources, Unnamed, base_name};

/// All frames that an address stands for, innermost (most inlined) first.
type Names = Vec<FrameKey>;

/// Frames of all addresses.
pub(crate) struct Frames {
    objects: FxHashMap<(u32, u64), Names>,
    kernel: FxHashMap<u64, FrameKey>,
    jit: FxHashMap<(u64, u64), FrameKey>,
    python: PythonFrames,
    unnamed: Vec<Unnamed>,
}

impl Frames {
    /// Names all that is wanted.
    pub(crate) fn name(wanted: &Wanted, sources: &dyn Sources, builder: &mut Builder) -> Frames {
        let mut frames = Frames {
            objects: FxHashMap::default(),
            kernel: FxHashMap::default(),
            jit: FxHashMap::default(),
            python: PythonFrames::default(),
            unnamed: Vec::new(),
        };
        frames.name_objects(wanted, sources, builder);
        frames.name_kernel(wanted, builder);
        frames
    }

    fn name_objects(&mut self, wanted: &Wanted, sources: &dyn Sources, builder: &mut Builder) {
        let objects = wanted.objects.iter().map(|(number, offsets)| {
            let offsets: Vec<u64> = offsets.iter().copied().collect();
            (*number, sources.object(*number), offsets)
        });
        let objects: Vec<(u32, Option<Object<'_>>, Vec<u64>)> = objects.collect();
        let jobs =
            objects.iter().filter_map(|(_, object, offsets)| Some(Job { file: object.as_ref()?.file?, offsets }));
        let mut named = native::name_all(&jobs.collect::<Vec<_>>()).into_iter();
        for (number, object, offsets) in &objects {
            let is_open = object.as_ref().is_some_and(|object| object.file.is_some());
            let found = if is_open { named.next().unwrap_or_default() } else { not_opened() };
            self.add_object(*number, object.as_ref(), offsets, found, builder);
        }
    }

    /// Adds what was found at offsets of an object.
    fn add_object(
        &mut self,
        number: u32,
        object: Option<&Object<'_>>,
        offsets: &[u64],
        found: NamedFile,
        builder: &mut Builder,
    ) {
        let path = object.map_or("unknown object", |object| object.path);
        let build_id = object.and_then(|object| object.build_id.as_deref());
        let module = Module { path: builder.text(path), build_id: build_id.map(|id| builder.text(id)) };
        let module = builder.module(module);
        let mut nameless = 0;
        for (index, offset) in offsets.iter().enumerate() {
            let functions = found.named.get(index).map(|named| named.functions.as_slice()).unwrap_or_default();
            let mut names: Names = functions
                .iter()
                .map(|function| {
                    let key = FunctionKey {
                        name: builder.text(&function.name),
                        kind: Kind::Native,
                        file: function.file.as_deref().map(|file| builder.text(file)),
                        start_line: function.start_line,
                        module: Some(module),
                    };
                    let function_id = builder.function(key);
                    FrameKey {
                        line: function.line,
                        offset: *offset,
                        inlined: function.inlined,
                        ..FrameKey::of(function_id)
                    }
                })
                .collect();
            if names.is_empty() {
                nameless += 1;
                names.push(nameless_frame(base_name(path), Kind::Native, Some(module), *offset, builder));
            }
            self.objects.insert((number, *offset), names);
        }
        if nameless > 0 {
            let of = path.to_owned();
            let missing = found.reasons.into_iter().map(|reason| Unnamed { of: of.clone(), reason, frames: nameless });
            self.unnamed.extend(missing);
        }
    }

    fn name_kernel(&mut self, wanted: &Wanted, builder: &mut Builder) {
        if wanted.kernel.is_empty() {
            return;
        }
        let addresses: Vec<u64> = wanted.kernel.iter().copied().collect();
        let mut namer = KernelNamer::new();
        let reason = namer.reason();
        for (address, name) in addresses.iter().zip(namer.name(&addresses)) {
            let path = name.and_then(|name| name.module).unwrap_or("[kernel]");
            let module = Module { path: builder.text(path), build_id: None };
            let module = builder.module(module);
            let frame = match name {
                Some(name) => {
                    let key = FunctionKey {
                        name: builder.text(name.name),
                        kind: Kind::Kernel,
                        file: None,
                        start_line: 0,
                        module: Some(module),
                    };
                    FrameKey { offset: *address, ..FrameKey::of(builder.function(key)) }
                }
                None => nameless_frame("kernel", Kind::Kernel, Some(module), *address, builder),
            };
            self.kernel.insert(*address, frame);
        }
        if let Some(reason) = reason {
            let frames = addresses.len() as u64;
            self.unnamed.push(Unnamed { of: "kernel".to_owned(), reason, frames });
        }
    }

    /// The stack of a sample in the profile.
    pub(crate) fn stack(&mut self, sample: &RawSample, sources: &dyn Sources, builder: &mut Builder) -> Option<NodeId> {
        let mut innermost_first: Vec<FrameId> = Vec::with_capacity(sample.words.len());
        let mut code = None;
        for (index, word) in sample.words.iter().enumerate() {
            // the words of a frame may have been cut apart
            let before = code.take();
            match Word::decode(*word) {
                // its second word follows
                Word::Python(address) => code = Some(address),
                Word::PythonAt { check, instruction } => {
                    let instance = sample.thread.instance;
                    let frame = before
                        .and_then(|code| self.python.name(instance, code, (check, instruction), sources, builder));
                    innermost_first.extend(frame.map(|frame| builder.frame(frame)));
                }
                Word::PythonFault(fault) => {
                    let marker = nameless_frame(&fault_text(fault), Kind::Marker, None, 0, builder);
                    innermost_first.push(builder.frame(marker));
                }
                Word::Kernel(address) => {
                    let frame = self.kernel.get(&lookup(address, index == 0)).copied();
                    innermost_first.extend(frame.map(|frame| builder.frame(frame)));
                }
                Word::Object { object, offset, exact, by_frame_pointer } => {
                    let names = self.objects.get(&(object, lookup(offset, exact)));
                    let frames = names.into_iter().flatten();
                    innermost_first.extend(frames.map(|frame| builder.frame(found(*frame, by_frame_pointer))));
                }
                Word::Raw { address, exact, by_frame_pointer } => {
                    let frame = self.jit_frame(sample.thread.instance, lookup(address, exact), sources, builder);
                    innermost_first.push(builder.frame(found(frame, by_frame_pointer)));
                }
                Word::Cut(left_out) => {
                    let marker = nameless_frame("frames left out", Kind::Marker, None, left_out, builder);
                    innermost_first.push(builder.frame(marker));
                }
                Word::End { stop, detail, more } => {
                    if let Some(text) = crate::stops::marker(stop, detail, more, sources) {
                        let marker = nameless_frame(&text, Kind::Marker, None, 0, builder);
                        innermost_first.push(builder.frame(marker));
                    }
                }
                Word::Unknown(_) => {}
            }
        }
        builder.stack(innermost_first.into_iter().rev())
    }

    fn jit_frame(&mut self, instance: u64, address: u64, sources: &dyn Sources, builder: &mut Builder) -> FrameKey {
        *self.jit.entry((instance, address)).or_insert_with(|| {
            let name = sources.perf_map(instance).and_then(|map| map.lookup(address));
            match name {
                Some(name) => {
                    let name = builder.text(name);
                    let key = FunctionKey { name, kind: Kind::Jit, file: None, start_line: 0, module: None };
                    FrameKey { offset: address, ..FrameKey::of(builder.function(key)) }
                }
                None => nameless_frame("code in no file", Kind::Jit, None, address, builder),
            }
        })
    }

    /// What has no name and why, most frames first.
    pub(crate) fn unnamed(&mut self) -> Vec<Unnamed> {
        self.unnamed.sort_by_key(|unnamed| std::cmp::Reverse(unnamed.frames));
        std::mem::take(&mut self.unnamed)
    }
}

/// What is found in a file that is not open.
fn not_opened() -> NamedFile {
    NamedFile { named: Vec::new(), reasons: vec![Reason::NotOpened("its process was gone".to_owned())] }
}

/// A frame called by a bracketed text.
pub(crate) fn nameless_frame(
    text: &str,
    kind: Kind,
    module: Option<ModuleId>,
    offset: u64,
    builder: &mut Builder,
) -> FrameKey {
    let name = builder.text(&format!("[{text}]"));
    let function = builder.function(FunctionKey { name, kind, file: None, start_line: 0, module });
    FrameKey { offset, ..FrameKey::of(function) }
}

fn found(frame: FrameKey, by_frame_pointer: bool) -> FrameKey {
    let found_by = if by_frame_pointer { FoundBy::FramePointer } else { FoundBy::UnwindInfo };
    FrameKey { found_by, ..frame }
}
