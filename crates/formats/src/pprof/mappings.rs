//! The addresses of modules; see [`crate::pprof`] for how they are chosen.

use profile::{FrameKey, Kind, Module, ModuleId, Profile};

use super::messages::Mapping;
use super::strings::Strings;

/// Bits of an address that are the offset in a file.
const OFFSET_BITS: u32 = 40;
/// Modules that get a range: all ranges stay below 2⁶², for pprof takes what is above 2⁶³ for the kernel.
const RANGES: u64 = 1 << (62 - OFFSET_BITS);
const PAGE: u64 = 4096;

/// Mappings of a profile, one per module.
pub(super) struct Mappings(Vec<Mapping>);

impl Mappings {
    /// Places every module by the frames in it.
    pub(super) fn new(profile: &Profile, strings: &mut Strings) -> Mappings {
        let mut places = vec![Place::default(); profile.modules.len()];
        for frame in &profile.frames {
            let function = &profile.functions[frame.function.index()];
            if let Some(module) = function.module {
                let named = function.file.is_some();
                places[module.index()].widen(is_file(profile, module), frame, named);
            }
        }
        let mappings = places.iter().zip(&profile.modules).enumerate();
        Mappings(mappings.map(|(at, (place, module))| place.mapping(at as u64, module, profile, strings)).collect())
    }

    /// The mapping of a frame's module and the frame's address; 0 for what there is not.
    pub(super) fn place(&self, profile: &Profile, frame: &FrameKey) -> (u64, u64) {
        let function = &profile.functions[frame.function.index()];
        let Some(module) = function.module else {
            let is_code = !matches!(function.kind, Kind::Marker | Kind::Python);
            return (0, if is_code { frame.offset } else { 0 });
        };
        let mapping = &self.0[module.index()];
        let address = if is_file(profile, module) {
            range(module.0.into()).filter(|_| fits(frame.offset)).map(|start| start + frame.offset)
        } else {
            Some(frame.offset)
        };
        (mapping.id, address.unwrap_or(0))
    }

    /// The mappings.
    pub(super) fn finish(self) -> Vec<Mapping> {
        self.0
    }
}

/// Where the range of the module at this position starts.
fn range(position: u64) -> Option<u64> {
    (position < RANGES - 1).then_some((position + 1) << OFFSET_BITS)
}

fn fits(offset: u64) -> bool {
    offset < 1 << OFFSET_BITS
}

fn is_file(profile: &Profile, module: ModuleId) -> bool {
    !profile.text(profile.modules[module.index()].path).starts_with('[')
}

/// What is known of a module from the frames in it.
#[derive(Clone, Default)]
struct Place {
    /// Lowest and highest offset.
    extent: Option<(u64, u64)>,
    is_file: bool,
    files: bool,
    lines: bool,
    inlined: bool,
}

impl Place {
    fn widen(&mut self, is_file: bool, frame: &FrameKey, has_file: bool) {
        self.is_file = is_file;
        self.files |= has_file;
        self.lines |= frame.line != 0;
        self.inlined |= frame.inlined;
        if !is_file || fits(frame.offset) {
            let (low, high) = self.extent.unwrap_or((frame.offset, frame.offset));
            self.extent = Some((low.min(frame.offset), high.max(frame.offset)));
        }
    }

    fn mapping(&self, position: u64, module: &Module, profile: &Profile, strings: &mut Strings) -> Mapping {
        let (low, high) = self.extent.unwrap_or_default();
        let (low, limit) = (low & !(PAGE - 1), (high | (PAGE - 1)).saturating_add(1));
        let (start, limit, offset) = match range(position) {
            Some(start) if self.is_file => (start + low, start + limit, low),
            // as perf has it for the kernel: offset and address are the same
            None if self.is_file => (0, 0, 0),
            _ => (low, limit, low),
        };
        let path = match profile.text(module.path) {
            "[kernel]" => "[kernel.kallsyms]",
            path => path,
        };
        let build_id = module.build_id.map(|id| profile.text(id)).filter(|id| is_build_id(id)).unwrap_or_default();
        Mapping {
            id: position + 1,
            memory_start: start,
            memory_limit: limit,
            file_offset: offset,
            filename: strings.visible(path),
            build_id: strings.id(build_id),
            has_functions: true,
            has_filenames: self.files,
            has_line_numbers: self.lines,
            has_inline_frames: self.inlined,
        }
    }
}

/// Whether it is one: pprof splits off two digits without looking.
fn is_build_id(id: &str) -> bool {
    id.len() > 2 && id.bytes().all(|b| b.is_ascii_hexdigit())
}
