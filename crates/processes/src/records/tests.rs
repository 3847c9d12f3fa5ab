//! Records made by hand, damaged in all ways.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::RangeKind;

/// A record as the kernel lays it out.
fn record(kind: u32, flags: u32, body: &[u8], time: u64, cpu: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((flags as u16).to_ne_bytes());
    bytes.extend(((HEADER + body.len() + TRAILER) as u16).to_ne_bytes());
    bytes.extend(body);
    bytes.extend([7u32, 8].map(u32::to_ne_bytes).concat());
    bytes.extend(time.to_ne_bytes());
    bytes.extend([cpu, 0].map(u32::to_ne_bytes).concat());
    bytes
}

/// Bytes, a NUL, and padding to eight.
fn padded(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn map_record(event: &MapEvent, path: &[u8], time: u64) -> Vec<u8> {
    let range = &event.range;
    let mut body = [event.pid, event.tid].map(u32::to_ne_bytes).concat();
    body.extend([range.start, range.end - range.start, range.file_offset].map(u64::to_ne_bytes).concat());
    let flags = match range.identity {
        FileIdentity::BuildId(id) => {
            body.extend([id.as_bytes().len() as u8, 0, 0, 0]);
            body.extend(id.as_bytes());
            body.resize(32 + 24, 0);
            sys::PERF_RECORD_MISC_MMAP_BUILD_ID
        }
        FileIdentity::Inode { major, minor, inode, generation } => {
            body.extend([major, minor].map(u32::to_ne_bytes).concat());
            body.extend([inode, generation].map(u64::to_ne_bytes).concat());
            0
        }
        FileIdentity::None => {
            body.extend([0; 24]);
            0
        }
    };
    let protection = u32::from(range.readable) | u32::from(range.executable) << 2;
    body.extend([protection, 2].map(u32::to_ne_bytes).concat());
    body.extend(padded(path));
    record(sys::PERF_RECORD_MMAP2, flags | 2, &body, time, 1)
}

fn identity() -> impl Strategy<Value = FileIdentity> {
    let build_id = prop::collection::vec(any::<u8>(), 1..=20)
        .prop_map(|bytes| BuildId::new(&bytes).map_or(FileIdentity::None, FileIdentity::BuildId));
    let inode = (any::<u32>(), any::<u32>(), 1..u64::MAX, any::<u64>())
        .prop_map(|(major, minor, inode, generation)| FileIdentity::Inode { major, minor, inode, generation });
    prop_oneof![build_id, inode]
}

prop_compose! {
    fn file_map()(
        (pid, tid) in any::<(u32, u32)>(),
        (start, length, file_offset) in (0..1u64 << 63, 1..1u64 << 40, any::<u64>()),
        identity in identity(),
        name in prop::collection::vec(1..=255u8, 0..100),
        (readable, executable) in any::<(bool, bool)>(),
    ) -> MapEvent {
        let path = Arc::from(OsStr::from_bytes(&[b"/x", &name[..]].concat()));
        let range = MappedRange { start, end: start + length, file_offset, executable, readable, identity, path };
        MapEvent { pid, tid, range }
    }
}

fn damaged(bytes: &[u8]) {
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "cut to {length}");
    }
    for at in 0..bytes.len() {
        for change in [0xff, 0x01, 0x80] {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= change;
            if let Ok(Some(TimedEvent { event: Event::Map(map), .. })) = decode(&bytes) {
                assert!(map.range.start < map.range.end);
            }
        }
    }
}

proptest! {
    #[test]
    fn maps_of_files(event in file_map(), time: u64) {
        let bytes = map_record(&event, event.range.path.as_bytes(), time);
        prop_assert_eq!(decode(&bytes), Ok(Some(TimedEvent { time, cpu: 1, event: Event::Map(event) })));
        damaged(&bytes);
    }

    #[test]
    fn names(pid: u32, tid: u32, exec: bool, name in prop::collection::vec(1..=255u8, 0..16), time: u64) {
        let flags = if exec { sys::PERF_RECORD_MISC_COMM_EXEC } else { 0 };
        let body = [[pid, tid].map(u32::to_ne_bytes).concat(), padded(&name)].concat();
        let bytes = record(sys::PERF_RECORD_COMM, flags, &body, time, 3);
        let event = Event::Comm { pid, tid, comm: Comm::new(&name), exec };
        prop_assert_eq!(decode(&bytes), Ok(Some(TimedEvent { time, cpu: 3, event })));
        damaged(&bytes);
    }

    #[test]
    fn tasks(ids: [u32; 4], time: u64, fork: bool) {
        let [pid, ppid, tid, ptid] = ids;
        let body = [ids.map(u32::to_ne_bytes).concat(), time.to_ne_bytes().to_vec()].concat();
        let kind = if fork { sys::PERF_RECORD_FORK } else { sys::PERF_RECORD_EXIT };
        let bytes = record(kind, 0, &body, time, 0);
        let event = match fork {
            true => Event::Fork { pid, ppid, tid, ptid },
            false => Event::Exit { pid, ppid, tid, ptid },
        };
        prop_assert_eq!(decode(&bytes), Ok(Some(TimedEvent { time, cpu: 0, event })));
        damaged(&bytes);
    }

    #[test]
    fn losses(id: u64, count: u64) {
        let bytes = record(sys::PERF_RECORD_LOST, 0, &[id, count].map(u64::to_ne_bytes).concat(), 5, 0);
        prop_assert_eq!(decode(&bytes), Ok(Some(TimedEvent { time: 5, cpu: 0, event: Event::Lost { count } })));
        damaged(&bytes);
    }

    #[test]
    fn any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0..24u32, honest: bool) {
        if honest && bytes.len() >= HEADER {
            let size = (bytes.len() as u16).to_ne_bytes();
            bytes[..4].copy_from_slice(&kind.to_ne_bytes());
            bytes[6..8].copy_from_slice(&size);
        }
        if let Ok(Some(TimedEvent { event: Event::Map(map), .. })) = decode(&bytes) {
            prop_assert!(map.range.start < map.range.end);
        }
    }
}

#[test]
fn memory_without_a_file() {
    let path = Arc::from(OsStr::new(""));
    let (start, end, identity) = (4096, 8192, FileIdentity::None);
    let range = MappedRange { start, end, file_offset: 4096, executable: true, readable: true, identity, path };
    let event = MapEvent { pid: 1, tid: 1, range };
    let cases = [
        (&b"//anon"[..], "", RangeKind::Anonymous),
        (b"[vdso]", "[vdso]", RangeKind::Vdso),
        (b"[heap]", "[heap]", RangeKind::Special),
        (b"[stack]", "[stack]", RangeKind::Special),
        (b"/dev/zero (deleted)", "/dev/zero (deleted)", RangeKind::Anonymous),
        (b"/anon_hugepage (deleted)", "/anon_hugepage (deleted)", RangeKind::Anonymous),
        (b"/SYSV00000000 (deleted)", "/SYSV00000000 (deleted)", RangeKind::Anonymous),
    ];
    for (name, expected, kind) in cases {
        // such memory may have an inode all the same
        let inode = FileIdentity::Inode { major: 0, minor: 1, inode: 9, generation: 1 };
        for identity in [FileIdentity::None, inode] {
            let event = MapEvent { range: MappedRange { identity, ..event.range.clone() }, ..event };
            let decoded = decode(&map_record(&event, name, 1));
            let Ok(Some(TimedEvent { event: Event::Map(map), .. })) = decoded else { panic!("{decoded:?}") };
            assert_eq!(map.range.kind(), kind);
            assert_eq!(&*map.range.path, OsStr::new(expected));
            assert_eq!((map.range.file_offset, map.range.identity), (0, FileIdentity::None));
        }
    }
}

#[test]
fn a_file_whose_path_was_too_long() {
    let identity = FileIdentity::Inode { major: 8, minor: 1, inode: 9, generation: 1 };
    let path: Arc<OsStr> = Arc::from(OsStr::new("//toolong"));
    let (start, end) = (4096, 8192);
    let range = MappedRange { start, end, file_offset: 4096, executable: true, readable: true, identity, path };
    let event = MapEvent { pid: 1, tid: 1, range };
    let decoded = decode(&map_record(&event, b"//toolong", 1));
    assert_eq!(decoded, Ok(Some(TimedEvent { time: 1, cpu: 1, event: Event::Map(event) })));
}

#[test]
fn impossible_ranges_and_build_ids() {
    let identity = FileIdentity::None;
    let path = Arc::from(OsStr::new("/x"));
    let (start, end) = (4096, 8192);
    let range = MappedRange { start, end, file_offset: 0, executable: true, readable: true, identity, path };
    let bytes = map_record(&MapEvent { pid: 1, tid: 1, range }, b"/x", 1);
    let with = |at: usize, value: u64| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        decode(&bytes)
    };
    assert!(matches!(with(HEADER + 16, 0), Err(RecordError::Range { length: 0, .. })));
    assert!(matches!(with(HEADER + 16, u64::MAX), Err(RecordError::Range { .. })));
    for size in [0, 21, 255u8] {
        let mut bytes = bytes.clone();
        bytes[4..6].copy_from_slice(&(sys::PERF_RECORD_MISC_MMAP_BUILD_ID as u16).to_ne_bytes());
        bytes[HEADER + 32] = size;
        let Ok(Some(TimedEvent { event: Event::Map(map), .. })) = decode(&bytes) else { panic!("not decoded") };
        assert_eq!(map.range.identity, FileIdentity::None);
    }
}

#[test]
fn other_records_are_passed_over() {
    for kind in [sys::PERF_RECORD_SAMPLE, sys::PERF_RECORD_THROTTLE, sys::PERF_RECORD_NAMESPACES, 999] {
        assert_eq!(decode(&record(kind, 0, &[1; 16], 1, 0)), Ok(None));
    }
}
