//! All of native stacks in one run: rows, then live programs.

use serde::Serialize;

use crate::{live, rows};

/// Options.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// How the programs are recorded
    #[command(flatten)]
    live: live::Arguments,
}

#[derive(Serialize)]
struct Report {
    rows: rows::Report,
    live: live::Report,
}

/// Runs both; false: a comparison failed.
pub fn run(arguments: &Arguments, json: bool) -> anyhow::Result<bool> {
    let rows = rows::collect(&[], !json)?;
    if !json {
        println!("{rows}");
    }
    let live = live::collect(&arguments.live, !json)?;
    if !json {
        print!("{live}");
    }
    let holds = rows.holds() && live.holds();
    if json {
        println!("{}", serde_json::to_string_pretty(&Report { rows, live })?);
    }
    Ok(holds)
}
