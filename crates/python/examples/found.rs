//! What interpreters processes have, and how long it takes to find and prove them: `found PID...`. Each process is looked at
//! often, with one cache for all; the first look, and the shortest and the median of the others.

use std::time::{Duration, Instant};

use python::interpreters::{Cache, of_process};
use python::prove::Effort;

const LOOKS: usize = 100;

fn main() {
    let cache = Cache::new();
    for argument in std::env::args().skip(1) {
        let Ok(pid) = argument.parse() else { continue };
        let look = || {
            let begin = Instant::now();
            let found = of_process(&cache, pid, &Effort::SMALL);
            (begin.elapsed(), found)
        };
        let (first, found) = look();
        let mut others: Vec<Duration> = (0..LOOKS).map(|_| look().0).collect();
        others.sort_unstable();
        let took = format!("{first:.1?}, then {:.1?} to {:.1?}", others[0], others[LOOKS / 2]);
        match found {
            Ok(found) if found.is_empty() => println!("{pid}: no Python; {took}"),
            Ok(found) => found.iter().for_each(|found| println!("{pid}: {found}; {took}")),
            Err(problem) => println!("{pid}: {problem}; {took}"),
        }
    }
}
