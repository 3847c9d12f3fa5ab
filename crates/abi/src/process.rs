//! What the sampler knows of a process, and where its code is mapped.

use crate::table::Rule;

/// Value of the process map; the key is the process id (tgid) in the initial pid namespace. 16 bytes.
///
/// Its mappings lie in the mapping arena, sorted, at `first_mapping ..`. To change them, user space writes a new run
/// and then replaces this entry, so that a walk sees the old mappings or the new ones and never a mix.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Process {
    /// Index in the mapping arena.
    pub first_mapping: u32,
    /// How many mappings there are.
    pub mappings: u32,
    /// A set of [`flags`].
    pub flags: u32,
    /// Index in the map of interpreters ([`crate::python::Entry`]); 0 = none that is known.
    pub python: u32,
}

/// Bit of a time in the map of stale processes: a record of what was given away found no room.
pub const LOST: u64 = 1;
/// Bit of such a time: what was given away was nothing that the sampler knew. It may be what user space is about to enter.
pub const PASSING: u64 = 2;

/// Facts about a process.
pub mod flags {
    /// The mappings are complete: a pc outside all of them is final and not worth asking user space again.
    pub const SETTLED: u32 = 1;
    /// What is known may be wrong already: samples are deferred, and only what happens to these mappings is of interest.
    pub const DOUBTED: u32 = 2;
}

/// A stretch of executable memory. 48 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mapping {
    /// First address.
    pub begin: u64,
    /// First address behind it.
    pub end: u64,
    /// Offset in the file of the byte at `begin`.
    pub file_offset: u64,
    /// Number of the object; 0 where no file is behind it (JIT code).
    pub object: u32,
    /// A [`code`] kind.
    pub code: u32,
    /// Index in the page arena of the entry for page `pages.first`.
    pub page_base: u32,
    /// Which pages of the file the table covers.
    pub pages: Pages,
}

/// A run of pages of a file. 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pages {
    /// First page (file offset >> [`crate::table::PAGE_BITS`]).
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// A place in code without unwind information, key of the map of what is known of such places. 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Place {
    /// Number of the object, or the process of code that is in no file.
    pub owner: u32,
    /// A set of [`place`] bits.
    pub how: u32,
    /// Offset in the file, or the address.
    pub at: u64,
}

/// Bits of [`Place::how`].
pub mod place {
    /// The code is in a file.
    pub const IN_FILE: u32 = 1;
    /// The place was interrupted; else a call returns to it.
    pub const INTERRUPTED: u32 = 2;
}

impl Place {
    /// The place of a pc in a mapping of a process. Code that is in a file is the same in all processes.
    #[inline(always)]
    pub fn new(pid: u32, mapping: &Mapping, pc: u64, interrupted: bool) -> Place {
        let how = if interrupted { place::INTERRUPTED } else { 0 };
        if mapping.object == 0 {
            return Place { owner: pid, how, at: pc };
        }
        let at = pc.wrapping_sub(mapping.begin).wrapping_add(mapping.file_offset);
        Place { owner: mapping.object, how: how | place::IN_FILE, at }
    }
}

/// What the code at a [`Place`] says of its caller. 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exit {
    /// The rule; [`Rule::NONE`] if the code does not show one.
    pub rule: Rule,
    /// The bytes at the place from which it was made: what is not in a file may have become other code.
    pub code: u64,
}

/// What lies in a mapping.
pub mod code {
    /// A file whose table is in place.
    pub const TABLE: u32 = 0;
    /// A file whose table is not ready: the sample is deferred.
    pub const PENDING: u32 = 1;
    /// A file or memory without unwind information: what the code says of its exit, or a frame pointer before a call.
    pub const NO_TABLE: u32 = 2;
    /// Anonymous executable memory: the same; frames carry the address.
    pub const ANONYMOUS: u32 = 3;
}

/// Mappings of one segment of the mapping arena.
pub const MAPPINGS_PER_SEGMENT: usize = 1 << 14;
/// Segments of the mapping arena.
pub const MAPPING_SEGMENTS: usize = 64;
/// Pages of one segment of the page arena.
pub const PAGES_PER_SEGMENT: usize = 1 << 16;
/// Segments of the page arena.
pub const PAGE_SEGMENTS: usize = 64;
/// Rows of one segment of the row arena (1 MiB).
pub const ROWS_PER_SEGMENT: usize = 1 << 18;
/// Segments of the row arena: 33 million rows.
pub const ROW_SEGMENTS: usize = 128;
/// Places without unwind information that are known at a time.
pub const EXITS: usize = 1 << 14;
/// Distinct rules.
pub const RULES: usize = 1 << 16;

const _: () = {
    assert!(size_of::<Process>() == 16);
    assert!(size_of::<Mapping>() == 48);
    assert!(size_of::<Place>() == 16 && size_of::<Exit>() == 32);
};
