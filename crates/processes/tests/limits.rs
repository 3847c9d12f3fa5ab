//! The limit of open files, which is the whole process's; therefore alone in this program.

use processes::{OpenError, Options, Sideband};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn too_many_open_files() {
    if !rustix::process::getuid().is_root() {
        println!("SKIPPED: needs root");
        return;
    }
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).expect("a lower limit");
    let cpus = Some(vec![0]);
    let result = Sideband::open(&Options { cpus, ..Options::default() });
    setrlimit(Resource::Nofile, before).expect("the limit as it was");
    match result {
        Err(error @ OpenError::TooManyFiles { cpu: 0, .. }) => {
            assert!(error.to_string().contains("ulimit -n"), "{error}")
        }
        other => panic!("{other:?}"),
    }
}
