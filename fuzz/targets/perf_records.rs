//! perf records: the ring that the kernel writes, the decoder, and the table of processes that follows them.
//!
//! The first bytes say where in the ring its tail and head are; the rest is its content.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use processes::records::{Event, decode};
use processes::ring::SidebandRing;
use processes::{Proc, ProcessTable, Scope};
use std::io::Write;

/// Bytes of the ring.
const SIZE: usize = 4096;
/// Of `data_head` in the control page (`struct perf_event_mmap_page`, include/uapi/linux/perf_event.h).
const DATA_HEAD: usize = 1024;

fuzz_target!(|input: &[u8]| {
    let Some(([low, high, breaks], content)) = input.split_first_chunk() else { return };
    // the reader begins at 0: what lies behind the head of a whole turn is read as the rest of it
    let head = u64::from(u16::from_le_bytes([*low, *high])) % (2 * SIZE as u64);
    let page = rustix::param::page_size();
    let mut control = vec![0; page];
    control[DATA_HEAD..DATA_HEAD + 8].copy_from_slice(&head.to_ne_bytes());
    let mut file = fuzz::memory_file::with(&control);
    let mut data = content[..content.len().min(SIZE)].to_vec();
    data.resize(SIZE, 0);
    file.write_all(&data).expect("a write to memory");
    let mut ring = SidebandRing::over(file.into(), SIZE).expect("a mapping");
    let mut table = ProcessTable::with_proc(Scope::All, Proc::at("/nonexistent"));
    let mut left = u32::from(*breaks);
    let (mut taken, mut bytes) = (0, 0);
    while taken < 1000 {
        let mut again = false;
        let dropped = ring.read(|record| {
            if left % 3 == 1 {
                left /= 3;
                again = true;
                return ControlFlow::Break(());
            }
            left /= 3;
            assert!(record.len() >= 8);
            taken += 1;
            bytes += record.len() as u64;
            follow(&mut table, record);
            ControlFlow::Continue(())
        });
        bytes += dropped;
        if !again {
            break;
        }
    }
    assert_eq!(bytes, head, "every byte was read or dropped");
    check(&mut table);
});

fn follow(table: &mut ProcessTable, record: &[u8]) {
    let Ok(Some(event)) = decode(record) else { return };
    if let Event::Map(map) = &event.event {
        assert!(map.range.start < map.range.end);
    }
    table.apply(&event);
}

fn check(table: &mut ProcessTable) {
    assert!(table.iter().all(|process| process.ended.is_none()));
    let gone = table.take_gone();
    assert!(gone.iter().all(|process| process.ended.is_some()));
    for process in table.iter().chain(&gone) {
        let ranges: Vec<_> = process.ranges.iter().collect();
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "ranges overlap");
        assert!(ranges.iter().all(|range| range.start < range.end && range.executable));
    }
}
