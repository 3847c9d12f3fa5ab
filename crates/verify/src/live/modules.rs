//! framehop's view of a process: the mapped files of one moment as its modules.

use std::fs::File;
use std::sync::Arc;

use abi::process::Mapping;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::{Object, ObjectSection};
use objects::Image;
use recorder::Evidence;
use rustc_hash::FxHashMap;

/// Numbers of rbp and rsp in DWARF.
const RBP: usize = 6;
const RSP: usize = 7;

type Bytes = Arc<[u8]>;
type Sections = ExplicitModuleSectionInfo<Bytes>;

/// What is read of a file, once.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) image: Image,
    sections: Parts,
}

/// The parts of a file that framehop wants; its own type cannot be copied.
#[derive(Default)]
struct Parts {
    text: Option<std::ops::Range<u64>>,
    got: Option<std::ops::Range<u64>>,
    eh_frame: Option<(std::ops::Range<u64>, Bytes)>,
    eh_frame_hdr: Option<(std::ops::Range<u64>, Bytes)>,
}

impl Source {
    fn read(path: &str, file: &File) -> Option<Source> {
        let image = Image::open(file).ok()?;
        let sections = Parts::of(&image)?;
        Some(Source { path: path.to_owned(), image, sections })
    }
}

impl Parts {
    fn of(image: &Image) -> Option<Parts> {
        let file = object::File::parse(image.bytes()).ok()?;
        let range = |name| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().saturating_add(section.size()))
        };
        let data = |name| Some((range(name)?, Bytes::from(file.section_by_name(name)?.data().ok()?)));
        Some(Parts {
            text: range(".text"),
            got: range(".got"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr: data(".eh_frame_hdr"),
        })
    }

    fn shown(&self) -> Sections {
        let split = |part: &Option<(std::ops::Range<u64>, Bytes)>| part.clone().unzip();
        let (eh_frame_svma, eh_frame) = split(&self.eh_frame);
        let (eh_frame_hdr_svma, eh_frame_hdr) = split(&self.eh_frame_hdr);
        ExplicitModuleSectionInfo {
            text_svma: self.text.clone(),
            got_svma: self.got.clone(),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            ..Default::default()
        }
    }
}

/// The files of a recording, by their numbers.
#[derive(Default)]
pub(super) struct Sources(FxHashMap<u32, Option<Arc<Source>>>);

impl Sources {
    pub(super) fn get(&mut self, evidence: &Evidence, number: u32) -> Option<Arc<Source>> {
        let read = || evidence.object(number).and_then(|(path, file)| Source::read(path, file?)).map(Arc::new);
        self.0.entry(number).or_insert_with(read).clone()
    }
}

/// How framehop's walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// At the root of the stack.
    Root,
    /// With an error of its.
    Failed(framehop::Error),
    /// Where memory was not copied.
    CopyEnds,
    /// It was not asked for more.
    Enough,
}

/// A process as it was when its mappings were these.
pub(super) struct Process {
    mappings: Vec<Mapping>,
    unwinder: UnwinderX86_64<Bytes>,
    cache: CacheX86_64,
}

impl Process {
    /// Enters all files.
    pub(super) fn new(evidence: &Evidence, sources: &mut Sources) -> Process {
        let mut unwinder = UnwinderX86_64::new();
        for mapping in evidence.mappings {
            let Some(source) = sources.get(evidence, mapping.object) else { continue };
            let Some(bias) = source.image.load_bias(mapping.begin, mapping.file_offset) else { continue };
            let range = mapping.begin..mapping.end;
            unwinder.add_module(Module::new(source.path.clone(), range, bias, source.sections.shown()));
        }
        Process { mappings: evidence.mappings.to_vec(), unwinder, cache: CacheX86_64::new() }
    }

    /// Whether these are still its mappings; where tables lie does not matter.
    pub(super) fn is(&self, mappings: &[Mapping]) -> bool {
        let place = |mapping: &Mapping| (mapping.begin, mapping.end, mapping.file_offset, mapping.object);
        self.mappings.iter().map(place).eq(mappings.iter().map(place))
    }

    /// framehop's walk of a sample, innermost first, of at most `most` frames.
    pub(super) fn walk(&mut self, evidence: &Evidence, most: usize) -> (Vec<FrameAddress>, End) {
        let registers = evidence.registers();
        let start = UnwindRegsX86_64::new(registers.pc, registers.all[RSP], registers.all[RBP]);
        let mut read = |address| evidence.word(address).ok_or(());
        let mut frames = Vec::new();
        let mut walk = self.unwinder.iter_frames(registers.pc, start, &mut self.cache, &mut read);
        let end = loop {
            if frames.len() == most {
                break End::Enough;
            }
            match walk.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break End::Root,
                Err(framehop::Error::CouldNotReadStack(_)) => break End::CopyEnds,
                Err(error) => break End::Failed(error),
            }
        };
        (frames, end)
    }
}
