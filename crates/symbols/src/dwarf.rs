//! Lines and inlined functions from DWARF.

use addr2line::{Context, Frame};
use gimli::{AttributeValue, EndianSlice, LittleEndian, SectionId, UnitOffset, UnitRef};
use memmap2::MmapOptions;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

use crate::Reason;
use crate::contents::{Input, is_plain};
use crate::debug_file::DebugFile;
use crate::layout::{Layout, Section};

/// Sections up to this size, in bytes, are copied: then nobody can pull the file from under us.
const COPIED: u64 = 64 << 20;
/// The most that a section may have that has to be copied or decompressed, in bytes.
const MAX_SECTION: u64 = 2 << 30;
/// How many `DW_AT_abstract_origin` and `DW_AT_specification` are followed.
const MAX_ORIGINS: usize = 8;

type Slice = EndianSlice<'static, LittleEndian>;

/// A function at an address, as DWARF has it.
#[derive(Debug)]
pub(crate) struct Place {
    /// Raw name: the linkage name where there is one.
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) file: Option<String>,
    pub(crate) line: u32,
    pub(crate) start_line: u32,
}

/// The debug information of a file.
pub(crate) struct DebugInfo {
    // before the sections, which it borrows
    context: Context<Slice>,
    _sections: Vec<Contents>,
}

/// Contents of a section.
enum Contents {
    Copied(Vec<u8>),
    Mapped(memmap2::Mmap),
}

impl Contents {
    fn bytes(&self) -> &[u8] {
        match self {
            Contents::Copied(bytes) => bytes,
            Contents::Mapped(map) => map,
        }
    }
}

impl DebugInfo {
    /// Reads the debug information of a file; `common` is the file that dwz split off it.
    pub(crate) fn read(file: &File, layout: &Layout, common: Option<&DebugFile>) -> Result<DebugInfo, Reason> {
        let mut sections = Vec::new();
        let mut dwarf = load(file, layout, &mut sections)?;
        if let Some(common) = common {
            dwarf.set_sup(load(&common.file, &common.layout, &mut sections)?);
        }
        let context = Context::from_dwarf(dwarf).map_err(|error| Reason::BadDebugInfo(error.to_string()))?;
        Ok(DebugInfo { context, _sections: sections })
    }

    /// The functions at an address, innermost first; empty if the debug information has nothing there.
    pub(crate) fn places(&self, address: u64) -> Result<Vec<Place>, gimli::Error> {
        let mut frames = self.context.find_frames(address).skip_all_loads()?;
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads();
        let mut places = Vec::new();
        let mut outermost = None;
        while let Some(frame) = frames.next()? {
            outermost = frame.dw_die_offset;
            places.push(place(&frame, unit));
        }
        let thrown_away = outermost.zip(unit).is_some_and(|(offset, unit)| is_thrown_away(unit, offset, address));
        Ok(if thrown_away { Vec::new() } else { places })
    }
}

fn place(frame: &Frame<'_, Slice>, unit: Option<UnitRef<'_, Slice>>) -> Place {
    let location = frame.location.as_ref();
    let start_line = frame.dw_die_offset.zip(unit).and_then(|(offset, unit)| declared_line(unit, offset));
    Place {
        name: frame.function.as_ref().map(|function| function.name.slice().to_vec()),
        file: location.and_then(|location| location.file).map(str::to_owned),
        line: location.and_then(|location| location.line).unwrap_or(0),
        start_line: start_line.unwrap_or(0),
    }
}

/// Whether a function that seems to hold an address was thrown away by the linker, which leaves its description at
/// address 0 and up, over other code.
fn is_thrown_away(unit: UnitRef<'_, Slice>, function: UnitOffset, address: u64) -> bool {
    let holding = || {
        let mut ranges = unit.die_ranges(&unit.entry(function).ok()?).ok()?;
        while let Some(range) = ranges.next().ok()? {
            if (range.begin..range.end).contains(&address) {
                return Some(range.begin);
            }
        }
        None
    };
    holding() == Some(0)
}

/// The line at which a function is declared. For what is declared in another unit it is not looked up.
fn declared_line(unit: UnitRef<'_, Slice>, mut offset: UnitOffset) -> Option<u32> {
    for _ in 0..MAX_ORIGINS {
        let entry = unit.entry(offset).ok()?;
        if let Some(line) = entry.attr_value(gimli::DW_AT_decl_line).and_then(|value| value.udata_value()) {
            return u32::try_from(line).ok();
        }
        let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
        match origin.or_else(|| entry.attr_value(gimli::DW_AT_specification))? {
            AttributeValue::UnitRef(next) => offset = next,
            _ => return None,
        }
    }
    None
}

/// Loads the sections of a file. They are pushed to `sections`, which must outlive the result.
fn load(file: &File, layout: &Layout, sections: &mut Vec<Contents>) -> Result<gimli::Dwarf<Slice>, Reason> {
    gimli::Dwarf::load(|id| {
        let Some(section) = find(layout, id) else { return Ok(Slice::new(&[], LittleEndian)) };
        let contents = read_section(file, layout, section)?;
        // SAFETY: the bytes are on the heap or in a mapping, where they stay when `contents` moves, and `DebugInfo`
        // drops everything that borrows them before them. Nothing hands the lifetime out.
        let bytes = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(contents.bytes()) };
        sections.push(contents);
        Ok(Slice::new(bytes, LittleEndian))
    })
}

/// The section of an id, if lines or functions need it.
fn find(layout: &Layout, id: SectionId) -> Option<&Section> {
    use SectionId::*;
    let needed = matches!(
        id,
        DebugAbbrev
            | DebugAddr
            | DebugAranges
            | DebugInfo
            | DebugLine
            | DebugLineStr
            | DebugRanges
            | DebugRngLists
            | DebugStr
            | DebugStrOffsets
    );
    let name = id.name();
    let older = || layout.section(&name.replacen(".debug_", ".zdebug_", 1));
    layout.section(name).or_else(older).filter(|section| needed && section.has_contents())
}

fn read_section(file: &File, layout: &Layout, section: &Section) -> Result<Contents, Reason> {
    if section.size > COPIED && is_plain(section) && is_trusted(file) {
        return map(file, section);
    }
    Input::File(file).section(layout, section, MAX_SECTION).map(Contents::Copied)
}

/// Whether only root or this user can write to the file: a mapping of a file that is cut short kills its reader.
fn is_trusted(file: &File) -> bool {
    let owner = rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(|data| (data.uid() == 0 || data.uid() == owner) && data.mode() & 0o022 == 0)
}

fn map(file: &File, section: &Section) -> Result<Contents, Reason> {
    let failed = |error: std::io::Error| Reason::NotReadable(error.to_string());
    let inside =
        section.offset.checked_add(section.size).is_some_and(|end| file.metadata().is_ok_and(|data| end <= data.len()));
    let size = usize::try_from(section.size).ok().filter(|_| inside);
    let size = size.ok_or_else(|| crate::contents::bad(&section.name, "lies outside the file"))?;
    // SAFETY: the range is inside the file, and only root and this user can write to it.
    let map = unsafe { MmapOptions::new().offset(section.offset).len(size).map(file) };
    map.map(Contents::Mapped).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_mapped_section_is_the_copied_one() {
        let file = File::open("/proc/self/exe").unwrap();
        let layout = Layout::read(&Input::File(&file)).unwrap();
        let section = layout.section(".debug_info").unwrap();
        let copied = Input::File(&file).section(&layout, section, MAX_SECTION).unwrap();
        assert!(!copied.is_empty() && map(&file, section).unwrap().bytes() == copied);
        let beyond = Section { offset: file.metadata().unwrap().len() - 10, ..section.clone() };
        assert!(map(&file, &beyond).is_err());
    }

    #[test]
    fn a_file_that_others_write_to_is_not_trusted() {
        let file = tempfile::tempfile().unwrap();
        for (mode, trusted) in [(0o644, true), (0o666, false), (0o664, false), (0o755, true)] {
            file.set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_trusted(&file), trusted, "{mode:o}");
        }
        file.set_permissions(std::fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::fchown(&file, Some(12345), None).unwrap();
        assert!(!is_trusted(&file));
    }
}
