//! Memory of live processes.

use processes::memory::{MAX_READ, MemoryProblem, ProcessMemory, ReadProblem};
use processes::stat::State;

use crate::target::Target;

#[test]
fn words_of_a_program_until_it_is_another() {
    let Some(mut target) = Target::start(&["other"]) else { return };
    let address = u64::from_str_radix(&target.ready[0], 16).expect("an address");
    let mut words = vec![0; target.ready[1].parse().expect("a length")];
    let memory = ProcessMemory::open(target.pid).expect("its memory");
    memory.read(address, &mut words).expect("readable");
    assert_eq!(words, b"these words are in the program's memory");
    memory.read(address, &mut []).expect("nothing can always be read");

    target.tell();
    let comm = || std::fs::read_to_string(format!("/proc/{}/comm", target.pid)).expect("its name");
    while comm().trim() != "cat" {
        std::thread::yield_now();
    }
    assert!(matches!(memory.read(address, &mut words), Err(ReadProblem::Ended)));
    ProcessMemory::open(target.pid).expect("the other program's memory");
    drop(target);
    assert!(matches!(memory.read(address, &mut words), Err(ReadProblem::Ended)));
}

#[test]
fn addresses_that_are_none() {
    let Some(target) = Target::start(&["other"]) else { return };
    let memory = ProcessMemory::open(target.pid).expect("its memory");
    let mut bytes = [0; 16];
    for address in [0, 8, 0x7fff_ffff_f000, 1 << 47, 1 << 62, (1 << 63) - 16] {
        let result = memory.read(address, &mut bytes);
        assert!(matches!(result, Err(ReadProblem::NotThere { .. })), "{address:#x}: {result:?}");
    }
    for address in [(1 << 63) - 15, 1 << 63, 0xffff_ffff_ff60_0000, u64::MAX - 15, u64::MAX] {
        let result = memory.read(address, &mut bytes);
        assert!(matches!(result, Err(ReadProblem::NotAnAddress { .. })), "{address:#x}: {result:?}");
    }
    let result = memory.read(0, &mut vec![0; MAX_READ + 1]);
    assert!(matches!(result, Err(ReadProblem::TooLong { .. })), "{result:?}");
}

#[test]
fn whole_or_nothing_at_the_end_of_a_mapping() {
    let (ranges, _) = processes::maps::read(
        &processes::Proc::system(),
        std::process::id(),
        processes::maps::Wanted::All,
        processes::MAX_RANGES,
    );
    let end = ranges.windows(2).find(|pair| pair[0].end < pair[1].start).expect("a gap")[0].end;
    let memory = ProcessMemory::open(std::process::id()).expect("our memory");
    let mut bytes = [0; 64];
    memory.read(end - 64, &mut bytes).expect("the last bytes");
    assert!(matches!(memory.read(end - 63, &mut bytes), Err(ReadProblem::NotThere { .. })));
}

#[test]
fn processes_that_are_none() {
    assert!(matches!(ProcessMemory::open(u32::MAX), Err(MemoryProblem::NoSuchProcess { .. })));
    let Some(mut target) = Target::start(&["vfork"]) else { return };
    target.hang_up();
    target.wait_until("ended", |state| state == State::Zombie);
    assert!(matches!(ProcessMemory::open(target.pid), Err(MemoryProblem::NoMemory { .. })));
}
