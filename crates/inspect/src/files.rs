//! The files that a process maps: opened, with their unwind tables when a stack needs them.

use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use abi::process::{Mapping, code};
use abi::table::Rule;
use attribution::Object;
use objects::{Image, UnwindTable};
use processes::object_file::open_mapped_file;
use processes::{FileIdentity, MappedRange, RangeKind};
use rustc_hash::FxHashMap;
use symbols::ObjectFile;

/// A file that is mapped with execute permission.
pub struct MappedFile {
    /// Path as the process sees it, or a name in brackets.
    pub path: String,
    /// The open file, or why it could not be opened.
    pub file: Result<ObjectFile, String>,
    /// Build-id as hexadecimal digits.
    pub build_id: Option<String>,
    table: OnceCell<Option<UnwindTable>>,
}

impl MappedFile {
    /// The unwind table; `None` if the file has none that can be used.
    fn table(&self) -> Option<&UnwindTable> {
        let build = || {
            let image = Image::open(self.file.as_ref().ok()?.file()).ok()?;
            UnwindTable::build(&image).ok()
        };
        self.table.get_or_init(build).as_ref()
    }
}

/// All of a process; numbers start at 1.
pub struct Files {
    pid: u32,
    list: Vec<MappedFile>,
    mappings: Vec<Mapping>,
}

impl Files {
    /// Opens those behind executable ranges, each file once. `ranges` are sorted, as in /proc/PID/maps.
    pub fn of_process(pid: u32, ranges: &[MappedRange]) -> Files {
        let mut files = Files { pid, list: Vec::new(), mappings: Vec::new() };
        let mut numbers: FxHashMap<(FileIdentity, PathBuf), u32> = FxHashMap::default();
        for range in ranges.iter().filter(|range| range.executable) {
            let object = match range.kind() {
                RangeKind::File | RangeKind::Memfd | RangeKind::Vdso => {
                    let key = (range.identity, PathBuf::from(&*range.path));
                    *numbers.entry(key).or_insert_with(|| files.open(range))
                }
                RangeKind::Anonymous | RangeKind::Special => 0,
            };
            files.mappings.push(Mapping {
                begin: range.start,
                end: range.end,
                file_offset: range.file_offset,
                object,
                code: if object == 0 { code::ANONYMOUS } else { code::TABLE },
                ..Mapping::default()
            });
        }
        files
    }

    fn open(&mut self, range: &MappedRange) -> u32 {
        let path = String::from_utf8_lossy(range.file_path().as_bytes()).into_owned();
        let opened = match range.kind() {
            RangeKind::Vdso => processes::memory::vdso_file(self.pid).map_err(|error| error.to_string()),
            _ => open_mapped_file(self.pid, range).map(|opened| opened.file).map_err(|error| error.to_string()),
        };
        let build_id = opened.as_ref().ok().and_then(processes::build_id::of_file).map(|id| id.to_string());
        let root = Some(PathBuf::from(format!("/proc/{}/root", self.pid)));
        let file = opened.map(|file| ObjectFile::new(file, PathBuf::from(&path), root));
        self.list.push(MappedFile { path, file, build_id, table: OnceCell::new() });
        self.list.len() as u32
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file with this number.
    pub fn get(&self, number: u32) -> Option<&MappedFile> {
        self.list.get(number.checked_sub(1)? as usize)
    }

    /// The mapping around an address.
    pub(crate) fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.begin <= address);
        self.mappings[..after].last().filter(|mapping| address < mapping.end)
    }

    pub(crate) fn rule(&self, mapping: &Mapping, offset: u64) -> Rule {
        let table = self.get(mapping.object).and_then(MappedFile::table);
        table.map_or(Rule::NONE, |table| table.lookup(offset))
    }

    /// The object with this number, for naming.
    pub fn object(&self, number: u32) -> Option<Object<'_>> {
        let file = self.get(number)?;
        Some(Object { path: &file.path, build_id: file.build_id.clone(), file: file.file.as_ref().ok() })
    }
}
