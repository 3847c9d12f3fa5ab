//! What the unwind tables of files are made of: `cargo run --release --example table -- FILE...`.

use std::fs::File;
use std::time::Instant;

use objects::{Image, UnwindTable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:>9} {:>9} {:>6} {:>10} {:>8}  file", "FDEs", "rows", "rules", "bytes", "ms");
    for path in std::env::args_os().skip(1) {
        let begin = Instant::now();
        let image = Image::open(&File::open(&path)?)?;
        let table = UnwindTable::build(&image)?;
        let milliseconds = begin.elapsed().as_secs_f64() * 1000.0;
        let (stats, size) = (&table.stats, table.size());
        println!(
            "{:>9} {:>9} {:>6} {:>10} {:>8.1}  {}",
            stats.fdes,
            stats.rows,
            stats.rules,
            size,
            milliseconds,
            path.display()
        );
        println!("{stats:?}\n");
    }
    Ok(())
}
