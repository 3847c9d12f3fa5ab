//! Prints what happens to processes, as it happens: `follow [SECONDS] [--quiet]`.

use std::time::{Duration, Instant};

use processes::{Change, Options, ProcessTable, Scope, Sideband};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = arguments.first().map_or(Ok(10), |text| text.parse())?;
    let quiet = arguments.iter().any(|argument| argument == "--quiet");
    let mut sideband = Sideband::open(&Options::default())?;
    let mut table = ProcessTable::new(Scope::All);
    let start = Instant::now();
    let seeded = table.seed()?;
    println!("{} processes in {:?}; build-ids: {}", seeded.processes, start.elapsed(), sideband.build_ids());
    let (mut events, mut count, mut lost, mut busy) = (Vec::new(), 0, 0, Duration::ZERO);
    while start.elapsed() < Duration::from_secs(seconds) {
        sideband.wait(Some(Duration::from_millis(100)))?;
        let awake = Instant::now();
        count += sideband.drain(&mut events).events;
        for event in events.drain(..) {
            let change = table.apply(&event);
            if let Change::Lost { count } = change {
                lost += count;
            }
            if !quiet {
                println!("{} cpu {} {:?}\n    {change:?}", event.time, event.cpu, event.event);
            }
        }
        table.reap();
        table.take_gone();
        busy += awake.elapsed();
    }
    println!("{count} events in {busy:?}, {lost} lost; {} processes", table.len());
    Ok(())
}
