//! Every row of a file's unwind table, against framehop's reading of the same file.
//!
//! Both sides unwind one frame of a made-up thread, from the same registers and the same memory, at every place where
//! either of them may change its rule. Ours is the walk itself ([`walk::turn`]) by the table that the sampler would
//! get; so this judges the decoding of `.eh_frame`, the table's format, the search in it and the walk's step together.
//! Where the two differ, gimli's row, evaluated with all registers and memory, is the arbiter.

mod answer;
mod arbiter;
mod classify;
mod compare;
mod files;
mod flow;
mod functions;
mod gaps;
mod go;
mod judge;
mod kinds;
mod ours;
mod place;
mod progress;
mod report;
mod thread;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use objects::{Image, UnwindTable};

pub use compare::compare;
pub use go::compare_go;
pub use kinds::{Kind, Verdict};
pub use place::kind_at;
pub use report::{Disagreement, Example, FileReport, Report, Tally};
pub use thread::Mode;

/// Options.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Executable files; without any, a set of common libraries and programs
    files: Vec<PathBuf>,
}

/// Runs it; false: a comparison failed.
pub fn run(arguments: &Arguments, json: bool) -> anyhow::Result<bool> {
    let report = collect(&arguments.files, !json)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(report.holds())
}

/// Compares these files, or those that are looked for if there are none; `tell` shows each one's result as soon as it is
/// there.
pub(crate) fn collect(files: &[PathBuf], tell: bool) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let mut files = files.to_vec();
    if files.is_empty() {
        for wanted in files::wanted() {
            match wanted.path {
                Some(path) => files.push(path),
                None => report.missing.push(wanted.what.to_owned()),
            }
        }
    }
    for path in files {
        let name = path.display().to_string();
        for judged in judge(&path, &name)? {
            match judged {
                Ok(file) => {
                    if tell {
                        println!("{file}");
                    }
                    report.add(file);
                }
                Err(why) => report.not_judged.push((name.clone(), format!("{why:#}"))),
            }
        }
    }
    Ok(report)
}

/// What each judge says of a file; an error where one cannot judge it. The outer error: there is no table.
fn judge(path: &Path, name: &str) -> anyhow::Result<Vec<anyhow::Result<FileReport>>> {
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let image = Image::open(&file).with_context(|| format!("cannot read {name}"))?;
    let table = UnwindTable::build(&image).with_context(|| format!("cannot make the table of {name}"))?;
    let by_framehop = compare(&image, &table, name);
    let by_code = compare_go(&image, &table, name)?;
    Ok(std::iter::once(by_framehop).chain(by_code.map(Ok)).collect())
}
