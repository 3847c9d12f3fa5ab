//! Panics that are no fault of ours.

use std::path::Path;

/// Makes panics of the crates that we use harmless, where the code under test says that it catches them; one of our own
/// crates still ends the fuzzer. libFuzzer's Rust side aborts at each of them.
pub fn allow_those_of_dependencies() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let is_foreign = info.location().is_some_and(|place| is_foreign(Path::new(place.file())));
        if !is_foreign {
            abort(info);
        }
    }));
}

/// Cargo keeps the sources of dependencies in a directory of this name.
fn is_foreign(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "registry")
}
