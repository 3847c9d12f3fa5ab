//! The files that programs map, with their unwind tables as the profiler makes them; each once for all runs.

use std::fs::File;
use std::path::{Path, PathBuf};

use abi::process::code;
use abi::table::Rule;
use object::{Object, ObjectSymbol};
use objects::{Image, UnwindTable};
use processes::object_file::open_mapped_file;
use processes::{FileIdentity, MappedRange, RangeKind};
use rustc_hash::FxHashMap;

use super::places::Place;

/// Changes a table before it is used, to see whether that is found.
pub type Alter = Box<dyn Fn(&Path, &mut UnwindTable)>;

/// What tells files apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    Identity(FileIdentity),
    Vdso,
}

/// A file.
struct Known {
    path: PathBuf,
    image: Image,
    /// `None`: no table could be made.
    table: Option<UnwindTable>,
    /// Functions by address: first, behind the last, name. Read when a name is asked for.
    functions: Option<Vec<(u64, u64, String)>>,
}

/// All files; numbers begin at 1.
#[derive(Default)]
pub struct Files {
    known: Vec<Known>,
    /// 0: cannot be opened, or is no executable.
    numbers: FxHashMap<Key, u32>,
    alter: Option<Alter>,
}

impl Files {
    /// None yet; `alter` is called with each table.
    pub fn new(alter: Option<Alter>) -> Files {
        Files { alter, ..Files::default() }
    }

    /// The file behind a range of a process (0 = none), and what lies there as a [`code`] kind: as the recorder
    /// decides it.
    pub fn of_range(&mut self, pid: u32, range: &MappedRange) -> (u32, u32) {
        let key = match range.kind() {
            RangeKind::File | RangeKind::Memfd => Key::Identity(range.identity),
            RangeKind::Vdso => Key::Vdso,
            RangeKind::Anonymous | RangeKind::Special => return (0, code::ANONYMOUS),
        };
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                let number = open(pid, range).map_or(0, |(path, image)| self.add(path, image));
                self.numbers.insert(key, number);
                number
            }
        };
        match self.get(number) {
            Some(Known { table: Some(_), .. }) => (number, code::TABLE),
            _ => (number, code::NO_TABLE),
        }
    }

    fn add(&mut self, path: PathBuf, image: Image) -> u32 {
        let mut table = UnwindTable::build(&image).ok();
        if let (Some(table), Some(alter)) = (&mut table, &self.alter) {
            alter(&path, table);
        }
        self.known.push(Known { path, image, table, functions: None });
        self.known.len() as u32
    }

    fn get(&self, number: u32) -> Option<&Known> {
        self.known.get((number as usize).checked_sub(1)?)
    }

    /// The rule at a place in a file.
    pub fn rule(&self, number: u32, offset: u64) -> Rule {
        self.get(number).and_then(|known| known.table.as_ref()).map_or(Rule::NONE, |table| table.lookup(offset))
    }

    /// The rule of a frame in words.
    pub fn explain(&self, place: Place) -> String {
        let table = self.get(place.object).and_then(|known| known.table.as_ref());
        let offset = place.offset.wrapping_sub(u64::from(!place.exact));
        table.map_or_else(|| "no table".to_owned(), |table| table.explain(offset))
    }

    /// A frame as `file!function+offset`, or `file+offset` where the file names no function. For a return address, the
    /// function is that of the call.
    pub fn name(&mut self, place: Place) -> String {
        let Place { object: number, offset, exact } = place;
        let Some(known) = (number as usize).checked_sub(1).and_then(|index| self.known.get_mut(index)) else {
            return format!("?+{offset:#x}");
        };
        let file = known.path.file_name().unwrap_or(known.path.as_os_str()).to_string_lossy();
        let functions = known.functions.get_or_insert_with(|| functions(known.image.bytes()));
        let before = u64::from(!exact);
        let found = known.image.file_offset_to_vaddr(offset.wrapping_sub(before)).and_then(|address| {
            let index = functions.partition_point(|(begin, ..)| *begin <= address);
            functions[..index].last().filter(|(_, end, _)| address < *end).map(|found| (found, address))
        });
        match found {
            Some(((begin, _, name), address)) => format!("{file}!{name}+{:#x}", address + before - begin),
            None => format!("{file}+{offset:#x}"),
        }
    }
}

fn open(pid: u32, range: &MappedRange) -> Option<(PathBuf, Image)> {
    if range.kind() == RangeKind::Vdso {
        let image = Image::from_bytes(processes::memory::vdso_image(pid).ok()?.bytes).ok()?;
        return Some((PathBuf::from("[vdso]"), image));
    }
    let file: File = open_mapped_file(pid, range).ok()?.file;
    Some((PathBuf::from(range.file_path()), Image::open(&file).ok()?))
}

/// Functions that a file's symbol tables name, by address. Assembler code often has a name and no size: then it reaches to the
/// next one.
fn functions(bytes: &[u8]) -> Vec<(u64, u64, String)> {
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let code = symbols.filter(|symbol| symbol.is_definition() && symbol.kind() == object::SymbolKind::Text);
    let mut all: Vec<_> = code
        .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
        .filter(|(_, _, name)| !name.is_empty())
        .collect();
    all.sort_by(|a, b| (a.0, u64::MAX - a.1).cmp(&(b.0, u64::MAX - b.1)));
    all.dedup_by_key(|(address, ..)| *address);
    let next: Vec<u64> = all.iter().skip(1).map(|(address, ..)| *address).chain([u64::MAX]).collect();
    let end = |address: u64, size: u64, next: u64| if size == 0 { next } else { address.saturating_add(size) };
    all.into_iter().zip(next).map(|((address, size, name), next)| (address, end(address, size, next), name)).collect()
}
