//! Tests of the cache, with the table of this test's own executable.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::key::Identity;
use super::*;
use crate::architecture::Architecture;
use crate::image::Image;

fn build_id(id: &[u8]) -> Identity {
    Identity::BuildId(id.to_vec())
}

fn own() -> (CacheKey, UnwindTable) {
    let image = Image::open(&File::open("/proc/self/exe").unwrap()).unwrap();
    // a small part of it, so that each byte of the file can be tried
    let mut table = UnwindTable::build(&image).unwrap();
    let first = table.pages.iter().position(|page| page.rows > 1).unwrap();
    table.pages.drain(..first);
    table.pages.truncate(4);
    let base = table.pages[0].first_row;
    let last = table.pages[3];
    table.rows = table.rows[base as usize..(last.first_row + last.rows) as usize].to_vec();
    for page in &mut table.pages {
        page.first_row -= base;
    }
    let key = CacheKey { identity: build_id(&[0xab; 20]), file_size: image.size(), architecture: image.architecture() };
    (key, table)
}

fn cache() -> (tempfile::TempDir, Cache) {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(&directory.path().join("a/b")).unwrap();
    (directory, cache)
}

#[test]
fn what_was_stored_is_loaded() {
    let (key, table) = own();
    let (_directory, cache) = cache();
    assert_eq!(cache.load(&key), None);
    cache.store(&key, &table).unwrap();
    assert_eq!(cache.load(&key), Some(table));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&cache.directory), 0o700);
    assert_eq!(mode(&cache.path(&key)), 0o600);
    assert_eq!(fs::read_dir(&cache.directory).unwrap().count(), 1, "nothing unfinished is left");
}

#[test]
fn another_file_has_another_table() {
    let (key, table) = own();
    let (_directory, cache) = cache();
    cache.store(&key, &table).unwrap();
    let others = [
        CacheKey { file_size: 1, ..key.clone() },
        CacheKey { identity: build_id(&[0xab; 19]), ..key.clone() },
        CacheKey { architecture: Architecture::Aarch64, ..key.clone() },
    ];
    for other in others {
        assert_eq!(cache.load(&other), None);
        // not even under its name
        fs::copy(cache.path(&key), cache.path(&other)).unwrap();
        assert_eq!(cache.load(&other), None);
    }
}

/// A program that is changed in place to another one of the same size, with the modification time set back.
#[test]
fn a_changed_file_without_build_id_is_not_served_the_old_table() {
    let (directory, cache) = cache();
    let path = directory.path().join("program");
    let write = |source: &str| {
        let (code, program) = (directory.path().join("code.c"), directory.path().join("new"));
        fs::write(&code, source).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let flags = ["-O1", "-nostdlib", "-static", "-Wl,--build-id=none", "-o"];
        assert!(compiler.args(flags).args([&program, &code]).status().unwrap().success());
        // in place, so that the inode stays
        fs::write(&path, fs::read(program).unwrap()).unwrap();
    };
    let later = SystemTime::now() + Duration::from_secs(3600);
    let open = || {
        let file = File::open(&path).unwrap();
        let image = Image::open(&file).unwrap();
        assert_eq!((CacheKey::of(&image), CacheKey::of_file(&image, &file)), (None, None), "it is too new");
        let key = CacheKey::of_place(&image, &file, later).unwrap();
        (UnwindTable::build(&image).unwrap(), key)
    };
    write("void _start(void) { for (;;); }");
    let (first, first_key) = open();
    assert_eq!(open(), (first.clone(), first_key.clone()));
    cache.store(&first_key, &first).unwrap();
    assert_eq!(cache.load(&first_key), Some(first.clone()));

    let times = fs::metadata(&path).unwrap();
    // clocks of file systems go in steps of some milliseconds
    std::thread::sleep(Duration::from_millis(50));
    write("void _start(void) { __asm__(\"push %rbx; .cfi_adjust_cfa_offset 8\"); for (;;); }");
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(times.modified().unwrap()).unwrap();
    let now = file.metadata().unwrap();
    let visible = |data: &fs::Metadata| (data.ino(), data.len(), data.modified().unwrap());
    assert_eq!(visible(&now), visible(&times));
    let (second, second_key) = open();
    assert_ne!(first.rows, second.rows);
    assert_eq!(cache.load(&second_key), None);
    // not even under its name
    fs::copy(cache.path(&first_key), cache.path(&second_key)).unwrap();
    assert_eq!(cache.load(&second_key), None);
    cache.store(&second_key, &second).unwrap();
    assert_eq!((cache.load(&first_key), cache.load(&second_key)), (Some(first), Some(second)));
}

#[test]
fn every_damaged_byte_is_noticed() {
    let (key, table) = own();
    let good = format::encode(&key, &table);
    assert_eq!(format::decode(&key, &good), Some(table));
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        assert_eq!(format::decode(&key, &bad), None, "byte {at}");
    }
}

#[test]
fn every_cut_is_noticed() {
    let (key, table) = own();
    let good = format::encode(&key, &table);
    for length in 0..good.len() {
        assert_eq!(format::decode(&key, &good[..length]), None);
    }
    assert_eq!(format::decode(&key, &[&good[..], &[0]].concat()), None);
}

/// Encodes a table with a right checksum, as an attacker would.
#[test]
fn made_up_tables_are_refused() {
    let (key, table) = own();
    let refused = |change: &dyn Fn(&mut UnwindTable)| {
        let mut table = table.clone();
        change(&mut table);
        assert_eq!(format::decode(&key, &format::encode(&key, &table)), None);
    };
    let rules = table.rules.len() as u16;
    refused(&|t| t.rows[1].rule = rules);
    refused(&|t| t.rows[0].low = 1);
    refused(&|t| t.rows[1].low = 0);
    refused(&|t| t.rows.last_mut().unwrap().low = 4096);
    refused(&|t| t.pages[0].rows += 1);
    refused(&|t| t.pages[1].first_row += 1);
    refused(&|t| t.pages[3].rows = u32::MAX);
    refused(&|t| t.rows.truncate(t.rows.len() - 1));
    refused(&|t| t.rules.clear());
    refused(&|t| t.rules[0].cfa = 1);
    refused(&|t| t.rules[1].cfa = 200);
    refused(&|t| t.rules[1].register = 32);
}

proptest::proptest! {
    #[test]
    fn random_bytes_never_panic(bytes: Vec<u8>) {
        let key = CacheKey { identity: build_id(&[1]), file_size: 1, architecture: Architecture::X86_64 };
        proptest::prop_assert_eq!(format::decode(&key, &bytes), None);
    }
}

#[test]
fn directories_of_others_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let us = user();
    assert!(Cache::open_as(directory.path(), us).is_ok());
    assert!(matches!(Cache::open_as(directory.path(), us + 1), Err(CacheError::NotOurs { owner, .. }) if owner == us));
    for mode in [0o770, 0o702, 0o1777] {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(matches!(Cache::open(directory.path()), Err(CacheError::Writable { mode: m, .. }) if m == mode));
    }
}

#[test]
fn only_a_directory_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Cache::open(&file), Err(CacheError::Io { action: "create", .. })));
    let link = directory.path().join("link");
    symlink(directory.path(), &link).unwrap();
    assert!(matches!(Cache::open(&link), Err(CacheError::NotADirectory(_))));
}

#[test]
fn links_and_pipes_in_the_place_of_tables_are_ignored() {
    let (key, table) = own();
    let (directory, cache) = cache();
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, format::encode(&key, &table)).unwrap();
    let path = cache.path(&key);
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(cache.load(&key), None);
    fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert_eq!(cache.load(&key), None);
}

#[test]
fn the_longest_unused_goes_first() {
    let (key, table) = own();
    let (_directory, cache) = cache();
    let keys: Vec<CacheKey> = (0..4).map(|i| CacheKey { identity: build_id(&[i]), ..key.clone() }).collect();
    for (i, key) in keys.iter().enumerate() {
        cache.store(key, &table).unwrap();
        let file = File::options().write(true).open(cache.path(key)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(1000 * (4 - i as u64))).unwrap();
    }
    assert!(cache.load(&keys[0]).is_some());
    let size = format::encode(&keys[0], &table).len() as u64;
    let unfinished = cache.directory.join(format!("1-1.{UNFINISHED_EXTENSION}"));
    fs::write(&unfinished, "").unwrap();
    let other = cache.directory.join("README");
    fs::write(&other, "").unwrap();

    assert_eq!(cache.prune(4 * size).unwrap(), Pruned { removed: 0, kept_bytes: 4 * size });
    assert_eq!(cache.prune(2 * size + 1).unwrap(), Pruned { removed: 2, kept_bytes: 2 * size });
    let kept: Vec<bool> = keys.iter().map(|key| cache.path(key).exists()).collect();
    assert_eq!(kept, [true, false, false, true]);

    assert!(unfinished.exists(), "its writer may be alive");
    File::options().write(true).open(&unfinished).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(cache.prune(0).unwrap(), Pruned { removed: 3, kept_bytes: 0 });
    assert!(!unfinished.exists() && other.exists());
}

#[test]
fn where_caches_are() {
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(directory_for(0, path("/x"), path("/root")), path("/var/cache/wholestack"));
    assert_eq!(directory_for(1000, path("/x"), path("/home/u")), path("/x/wholestack"));
    assert_eq!(directory_for(1000, path("x"), path("/home/u")), path("/home/u/.cache/wholestack"));
    assert_eq!(directory_for(1000, None, path("/home/u")), path("/home/u/.cache/wholestack"));
    assert_eq!(directory_for(1000, None, None), None);
}
