//! Unwind tables: how large, how long they take to make, and to fetch from the cache.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use objects::{Cache, CacheKey, Image, UnwindTable};

use crate::bench::Bench;
use crate::code;
use crate::harness::{Figures, Variant, interleave};
use crate::report::{Section, Table, column};

/// Takes the measure.
pub fn take(bench: &Bench) -> Result<Section> {
    let files = code::well_known();
    let directory = bench.directory.join("tables");
    let cache = Cache::open(&directory).context("a cache for tables")?;
    let cache = &cache;
    let variants = files.iter().map(|path| Variant::new(path.display().to_string(), move || run(path, cache)));
    let series = interleave(bench.rounds, variants.collect())?;
    let columns = [
        column("file MB", "file bytes", 1).times(1e-6),
        column("rows", "rows", 0),
        column("rules", "rules", 0),
        column("table MB", "bytes", 2).times(1e-6),
        column("made in s", "build", 3),
        column("MB/s of file", "rate", 0).times(1e-6),
        column("stored in s", "store", 3),
        column("from the cache in s", "load", 4),
    ];
    Ok(Section {
        title: "Unwind tables",
        about: "Made in this process by the same code, one thread, the file in the page cache. A row has four bytes."
            .to_owned(),
        tables: vec![Table::of(&series, "file", &columns)],
        series,
        notes: Vec::new(),
    })
}

fn run(path: &PathBuf, cache: &Cache) -> Result<Figures> {
    into_page_cache(path)?;
    let (image, opened) = timed(|| Ok(Image::open(&File::open(path)?)?))?;
    let (table, built) = timed(|| Ok(UnwindTable::build(&image)?))?;
    let mut figures = Figures::from([
        ("file bytes", image.size() as f64),
        ("rows", table.rows.len() as f64),
        ("rules", table.rules.len() as f64),
        ("bytes", table.size() as f64),
        ("build", opened + built),
        ("rate", image.size() as f64 / (opened + built)),
    ]);
    if let Some(key) = CacheKey::of(&image) {
        let ((), stored) = timed(|| Ok(cache.store(&key, &table)?))?;
        let (loaded, load) = timed(|| cache.load(&key).context("the cache does not have what it was given"))?;
        anyhow::ensure!(loaded == table, "the cache gives another table");
        figures.extend([("store", stored), ("load", load)]);
    }
    Ok(figures)
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let begun = Instant::now();
    let result = work()?;
    Ok((result, begun.elapsed().as_secs_f64()))
}

fn into_page_cache(path: &Path) -> Result<()> {
    std::io::copy(&mut File::open(path)?, &mut std::io::sink())?;
    Ok(())
}
