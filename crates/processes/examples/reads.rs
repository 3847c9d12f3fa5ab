//! What a read of another process's memory costs, by /proc/PID/mem and by `process_vm_readv`.

use std::process::{Command, Stdio};
use std::time::Instant;

use processes::memory::{ProcessMemory, read_memory};
use processes::{Proc, RangeKind, maps};

const READS: usize = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
    let pid = child.id();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let (ranges, _) = maps::read(&Proc::system(), pid, maps::Wanted::All, processes::MAX_RANGES);
    let address = ranges.iter().find(|range| range.kind() == RangeKind::File).ok_or("no mapping")?.start;
    let memory = ProcessMemory::open(pid)?;
    for length in [8, 512, 4096] {
        let mut bytes = vec![0; length];
        let by_file = median(|| memory.read(address, &mut bytes).is_ok());
        let mut bytes = vec![0; length];
        let by_call = median(|| read_memory(pid, address, &mut bytes).is_ok());
        println!("{length:5} bytes: /proc/PID/mem {by_file} ns, process_vm_readv {by_call} ns");
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Nanoseconds of a read; the clock's own cost is in it.
fn median(mut read: impl FnMut() -> bool) -> u128 {
    let mut times: Vec<u128> = (0..READS)
        .map(|_| {
            let begin = Instant::now();
            assert!(read());
            begin.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    times[READS / 2]
}
