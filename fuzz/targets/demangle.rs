//! Demangling of any symbol: bounded, whatever it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbols::{MAX_NAME, demangle};

fuzz_target!(init: fuzz::panics::allow_those_of_dependencies(), |raw: &[u8]| {
    assert!(demangle(raw).len() <= MAX_NAME + '…'.len_utf8());
});
