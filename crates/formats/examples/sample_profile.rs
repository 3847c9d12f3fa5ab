//! Writes a synthetic profile in every format, to look at: `sample_profile DIRECTORY`.

#[path = "../tests/formats/synthetic.rs"]
mod synthetic;

use std::error::Error;
use std::path::PathBuf;

use formats::{Format, Output};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: sample_profile DIRECTORY")?);
    for (name, profile) in [("friendly", synthetic::friendly()), ("hostile", synthetic::whole())] {
        for format in Format::ALL {
            let path = directory.join(format!("{name}{}", format.extensions()[0]));
            Output::create(&path)?.finish(&profile)?;
            println!("{}", path.display());
        }
    }
    Ok(())
}
