//! Thread pointers of all threads of a process, again and again, and for how long each look holds a thread:
//! `thread_pointers PID [ROUNDS]`.

use processes::Proc;
use processes::thread_pointer::{Patience, of_threads};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or("which process?")?.parse()?;
    let rounds = arguments.next().map_or(Ok(1), |rounds| rounds.parse::<u32>())?;
    let mut held = Vec::new();
    for round in 0..rounds {
        let tids = Proc::system().tids(pid)?;
        for (tid, result) in tids.iter().zip(of_threads(&tids, Patience::default())) {
            match result {
                Ok(looked) if round == 0 => println!("{tid}: {:#x}", looked.registers.thread_pointer),
                Err(ref problem) => println!("{tid}: {problem}"),
                Ok(_) => {}
            }
            held.extend(result.ok().map(|looked| looked.held));
        }
    }
    held.sort_unstable();
    let part = |thousandths: usize| held.get(held.len().saturating_sub(1) * thousandths / 1000);
    println!("{} looks; held: median {:?}, 99 % {:?}, longest {:?}", held.len(), part(500), part(990), part(1000));
    Ok(())
}
