//! What the fuzz targets have in common: files that are not on disk, ELF files with parts of one's choice, and what
//! must be true of every result.

pub mod elf;
pub mod memory_file;
pub mod names;
pub mod outputs;
pub mod panics;
pub mod parts;
pub mod table;
