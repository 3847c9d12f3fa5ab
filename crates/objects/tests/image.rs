//! Images: what is refused, build-ids, addresses.

mod common;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use common::elf::{AARCH64, Elf, Frames, TEXT, X86_64};
use common::{compile, library, mapped_files, open, output};
use objects::{Architecture, Image, ImageError, UnwindTable};

fn elf() -> Vec<u8> {
    Elf::new(X86_64, 0x100, Frames::x86_64().bytes).bytes()
}

fn with(at: usize, bytes: &[u8]) -> Result<Image, ImageError> {
    let mut file = elf();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    Image::from_bytes(file)
}

#[test]
fn what_is_not_supported_is_named() {
    assert!(Image::from_bytes(elf()).is_ok());
    assert!(matches!(with(0, b"#!/bin/sh"), Err(ImageError::NotElf)));
    assert!(matches!(with(4, &[1]), Err(ImageError::Bits32)));
    assert!(matches!(with(4, &[3]), Err(ImageError::NotElf)));
    assert!(matches!(with(5, &[2]), Err(ImageError::BigEndian)));
    assert!(matches!(with(5, &[0]), Err(ImageError::NotElf)));
    assert!(matches!(with(18, &[8, 0]), Err(ImageError::Machine(8))));
    assert!(matches!(with(54, &[32, 0]), Err(ImageError::ProgramHeaderSize(32))));
    assert!(matches!(with(56, &[0xff, 0xff]), Err(ImageError::TooManyProgramHeaders(0xffff))));
    assert!(matches!(with(32, &[0xff; 8]), Err(ImageError::Truncated("program headers"))));
    assert!(matches!(Image::from_bytes(elf()[..63].to_vec()), Err(ImageError::Truncated("file header"))));
    assert!(matches!(Image::from_bytes(elf()[..100].to_vec()), Err(ImageError::Truncated("program headers"))));
    assert!(matches!(Image::from_bytes(Vec::new()), Err(ImageError::NotElf)));
}

#[test]
fn what_is_not_a_regular_file_is_refused() {
    let open = |path: &str| Image::open(&std::fs::File::open(path).unwrap());
    assert!(matches!(open("/"), Err(ImageError::NotAFile)));
    assert!(matches!(open("/dev/null"), Err(ImageError::NotAFile)));
    let empty = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(Image::open(empty.as_file()), Err(ImageError::NotElf)));
}

#[test]
fn both_architectures_are_known() {
    let image = Image::from_bytes(Elf::new(AARCH64, 0x100, Vec::new()).bytes()).unwrap();
    assert_eq!(image.architecture(), Architecture::Aarch64);
    assert_eq!(Image::from_bytes(elf()).unwrap().architecture(), Architecture::X86_64);
}

#[test]
fn no_cut_of_a_file_panics() {
    let file = elf();
    for length in (0..0x200).chain(file.len() - 0x300..file.len()) {
        if let Ok(image) = Image::from_bytes(file[..length].to_vec()) {
            image.build_id();
            let _ = UnwindTable::build(&image);
        }
    }
}

/// The build-id that readelf prints.
fn readelf_build_id(path: &Path) -> Option<String> {
    let notes = output("readelf", &["--notes", "--wide", path.to_str().unwrap()]);
    let id = notes.lines().find_map(|line| line.trim().split_once("Build ID: ").map(|(_, id)| id.to_owned()));
    id.map(|id| id.trim().to_owned())
}

fn our_build_id(path: &Path) -> Option<String> {
    open(path).build_id().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[test]
fn build_ids_like_readelf() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = mapped_files();
    for style in ["sha1", "md5", "0x0102030405060708", "none"] {
        files.push(compile(directory.path(), "realign.c", &[&format!("-Wl,--build-id={style}")]));
    }
    files.push(library("libstdc++.so.6"));
    let ids: Vec<Option<String>> = files.iter().map(|path| our_build_id(path)).collect();
    assert_eq!(ids, files.iter().map(|path| readelf_build_id(path)).collect::<Vec<_>>());
    assert!(ids.contains(&None) && ids.contains(&Some("0102030405060708".to_owned())));
}

#[test]
fn a_build_id_in_a_section_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = compile(directory.path(), "realign.c", &["-Wl,--build-id=0xabcdef"]);
    let mut bytes = std::fs::read(&path).unwrap();
    // turn the note segments into nothing
    let count = u16::from_le_bytes([bytes[56], bytes[57]]) as usize;
    for header in (0..count).map(|i| 64 + i * 56) {
        if bytes[header..header + 4] == [4, 0, 0, 0] {
            bytes[header] = 0;
        }
    }
    assert_eq!(Image::from_bytes(bytes).unwrap().build_id(), Some(vec![0xab, 0xcd, 0xef]));
}

/// The load bias of each object by the loader itself.
fn biases_by_the_loader() -> HashMap<PathBuf, u64> {
    extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, to: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the loader passes a valid object, whose name is a string that lives as long; `to` is what was given
        // to dl_iterate_phdr below.
        let (info, biases) = unsafe { (&*info, &mut *to.cast::<HashMap<PathBuf, u64>>()) };
        // SAFETY: as above.
        let name = unsafe { std::ffi::CStr::from_ptr(info.dlpi_name) }.to_str().unwrap();
        let name = if name.is_empty() { "/proc/self/exe" } else { name };
        // the vDSO has a name that is no path
        if let Ok(path) = std::fs::canonicalize(name) {
            biases.insert(path, info.dlpi_addr);
        }
        0
    }
    let mut biases = HashMap::new();
    // SAFETY: `add` has the type that is asked for, and `biases` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut biases).cast()) };
    biases
}

#[test]
fn load_biases_like_the_loader() {
    let expected = biases_by_the_loader();
    let mut seen = 0;
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [range, permissions, offset, _, _, path] = words[..] else { continue };
        let Some(bias) = expected.get(Path::new(path)).filter(|_| permissions.contains('x')) else { continue };
        let hex = |text| u64::from_str_radix(text, 16).unwrap();
        let (start, offset) = (hex(range.split_once('-').unwrap().0), hex(offset));
        assert_eq!(open(Path::new(path)).load_bias(start, offset), Some(*bias), "{line}");
        seen += 1;
    }
    assert!(seen >= 3, "an executable, libc and the loader");
}

#[test]
fn this_tests_text_is_where_its_code_runs() {
    // this executable is linked by lld, or by ld: addresses of functions must be found either way
    let image = open(Path::new("/proc/self/exe"));
    let exe = std::fs::canonicalize("/proc/self/exe").unwrap();
    let bias = biases_by_the_loader()[&exe];
    let vaddr = (this_tests_text_is_where_its_code_runs as *const () as u64).wrapping_sub(bias);
    let offset = image.vaddr_to_file_offset(vaddr).unwrap();
    assert_eq!(image.file_offset_to_vaddr(offset), Some(vaddr));
    // SAFETY: the bytes are this function's own code.
    let code = unsafe { std::slice::from_raw_parts(this_tests_text_is_where_its_code_runs as *const u8, 16) };
    assert_eq!(&image.bytes()[offset as usize..][..16], code);
}

#[test]
fn the_vdso_from_memory() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
    let hex = |text| u64::from_str_radix(text, 16).unwrap();
    // SAFETY: the vDSO is mapped for as long as the process lives, and never written.
    let bytes = unsafe { std::slice::from_raw_parts(hex(start) as *const u8, (hex(end) - hex(start)) as usize) };
    let image = Image::from_bytes(bytes.to_vec()).unwrap();
    assert_eq!(image.load_bias(hex(start), 0), Some(hex(start)));
    let table = UnwindTable::build(&image).unwrap();
    common::assert_consistent(&table);
    assert!(table.stats.fdes > 0 && table.stats.bad_fdes == 0);
}

#[test]
fn file_offsets_outside_segments_have_no_address() {
    let image = Image::from_bytes(elf()).unwrap();
    assert_eq!(image.file_offset_to_vaddr(TEXT), Some(TEXT));
    assert_eq!(image.file_offset_to_vaddr(TEXT + 0x100), None);
    assert_eq!(image.file_offset_to_vaddr(u64::MAX), None);
    assert_eq!(image.vaddr_to_file_offset(0), None);
    assert_eq!(image.segments().len(), 2);
    assert!(image.segments()[0].is_executable() && !image.segments()[1].is_executable());
}
