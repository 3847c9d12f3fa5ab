//! C++ and Rust names as people write them, whatever the name.

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use std::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest name in bytes, mangled or demangled; a longer one is cut and ends in an ellipsis.
pub const MAX_NAME: usize = 64 << 10;

/// How deep a C++ name may nest, in calls of its parser. At each level the parser may go back and try again: with the
/// limit of 96 that it has by itself, the fuzz target `demangle` found a name of 256 bytes that takes 0.6 s. Of 131,634
/// names in Debian's libraries, 4 nest deeper than this.
const MAX_NESTING: u32 = 72;
/// How long names may take that take long, all together: a program can have any number of them.
const MAX_SLOW: Duration = Duration::from_secs(5);
/// Time that a name takes long beyond. Sound names take less than a tenth of it.
const SLOW: Duration = Duration::from_millis(1);

/// Demangles names until too much time has gone into slow ones, of all threads together.
#[derive(Default, Debug)]
pub(crate) struct Demangler {
    slow_ns: AtomicU64,
}

impl Demangler {
    /// [`demangle`], or the name as it is.
    pub(crate) fn name(&self, raw: &[u8]) -> String {
        if self.is_exhausted() {
            return cut(String::from_utf8_lossy(raw.get(..=MAX_NAME).unwrap_or(raw)).into_owned());
        }
        let before = cpu_time();
        let name = demangle(raw);
        self.count(cpu_time().saturating_sub(before));
        name
    }

    /// Whether names stay as they are from now on.
    pub(crate) fn is_exhausted(&self) -> bool {
        Duration::from_nanos(self.slow_ns.load(Ordering::Relaxed)) > MAX_SLOW
    }

    fn count(&self, time: Duration) {
        if time > SLOW {
            // u64 has room for 500 years
            self.slow_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

/// Time that this thread has run: on a busy machine, others' time is not counted.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The name as people write it: C++ (Itanium) and Rust (legacy and v0) names are demangled, Rust's without their
/// hash; others stay. The version of a versioned symbol is dropped. Bytes that are not UTF-8 are replaced.
pub fn demangle(raw: &[u8]) -> String {
    let Some(name) = std::str::from_utf8(raw).ok().filter(|name| name.len() <= MAX_NAME) else {
        // one byte more than is shown: a name that is longer is seen to be
        return cut(String::from_utf8_lossy(raw.get(..=MAX_NAME).unwrap_or(raw)).into_owned());
    };
    let (base, version) = match name.split_once('@') {
        Some((base, version)) if !base.is_empty() => (base, version),
        _ => (name, ""),
    };
    let mut text = plain(base).unwrap_or_else(|| base.to_owned());
    if version == "plt" {
        text.push_str("@plt");
    }
    cut(text)
}

/// The demangled name of a mangled one.
fn plain(name: &str) -> Option<String> {
    if !(name.starts_with('_') || name.starts_with('?')) {
        return None;
    }
    catch_unwind(AssertUnwindSafe(|| rust(name).or_else(|| cpp(name)))).ok().flatten()
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded::default();
    let complete = write!(out, "{demangled:#}").is_ok();
    out.finish(complete)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") && !name.starts_with("__Z") && !name.starts_with("_GLOBAL_") {
        return None;
    }
    let options = ParseOptions::default().recursion_limit(MAX_NESTING);
    let (symbol, suffix) = BorrowedSymbol::with_tail_and_options(name.as_bytes(), &options).ok()?;
    let mut out = Bounded::default();
    let complete = symbol.structured_demangle(&mut out, &DemangleOptions::new()).is_ok();
    let mut text = out.finish(complete)?;
    if !suffix.is_empty() {
        // `.cold`, `.part.0` and the like that the parser did not take
        text.push_str(&String::from_utf8_lossy(suffix));
    }
    Some(text)
}

/// Takes what is written up to [`MAX_NAME`] bytes.
#[derive(Default)]
struct Bounded {
    text: String,
    full: bool,
}

impl Bounded {
    fn finish(self, complete: bool) -> Option<String> {
        match (complete, self.full) {
            (true, _) => Some(self.text),
            (false, true) => Some(self.text + "…"),
            (false, false) => None,
        }
    }
}

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.text.len() + more.len() > MAX_NAME {
            self.full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}

/// A name of at most [`MAX_NAME`] bytes; of a longer one the beginning and an ellipsis.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > MAX_NAME {
        text.truncate(text.floor_char_boundary(MAX_NAME));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_all_manglings() {
        for (raw, plain) in [
            ("main", "main"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_ZN3FooC1Ev@@LIB_1", "Foo::Foo()"),
            ("memcpy@GLIBC_2.14", "memcpy"),
            ("_Znwm@plt", "operator new(unsigned long)@plt"),
            ("_Z", "_Z"),
            ("_R", "_R"),
            ("@plt", "@plt"),
            ("", ""),
        ] {
            assert_eq!(demangle(raw.as_bytes()), plain);
        }
        assert_eq!(demangle(b"_Z3foov.cold"), "foo() [clone .cold]");
    }

    #[test]
    fn long_names_are_cut() {
        let long = "x".repeat(MAX_NAME + 1);
        let name = demangle(long.as_bytes());
        assert!(name.ends_with('…') && name.len() == MAX_NAME + '…'.len_utf8());
        let nested = format!("_Z{}", "N".repeat(60_000));
        assert_eq!(demangle(nested.as_bytes()), nested);
    }

    #[test]
    fn no_way_of_writing_a_name_makes_it_too_long() {
        let longest = MAX_NAME + '…'.len_utf8();
        // each byte that is no UTF-8 is shown as three
        assert_eq!(demangle(&vec![0xff; MAX_NAME]).len(), MAX_NAME / 3 * 3 + 3);
        assert!(demangle(&vec![0xff; MAX_NAME + 1]).len() <= longest);
        // a short name and a long tail
        let tail = format!("_Z3foov.{}", "a".repeat(MAX_NAME - 20));
        assert!(demangle(tail.as_bytes()).len() <= longest);
        let stub = format!("{}@plt", "x".repeat(MAX_NAME - 4));
        assert!(demangle(stub.as_bytes()).len() <= longest);
    }

    /// The parser's own limit would be reached by 86.
    #[test]
    fn names_that_nest_deeper_than_sound_ones_stay_as_they_are() {
        let pointers = |depth| format!("_Z1f{}i", "P".repeat(depth));
        assert_eq!(demangle(pointers(40).as_bytes()), format!("f(int{})", "*".repeat(40)));
        assert_eq!(demangle(pointers(75).as_bytes()), pointers(75));
    }

    #[test]
    fn names_that_take_too_long_stay_as_they_are() {
        let demangler = Demangler::default();
        assert_eq!(demangler.name(b"_Z3foov"), "foo()");
        demangler.count(SLOW);
        assert_eq!(demangler.slow_ns.load(Ordering::Relaxed), 0, "not slow");
        demangler.count(MAX_SLOW);
        assert_eq!(demangler.name(b"_Z3foov"), "foo()");
        demangler.count(2 * SLOW);
        assert!(demangler.is_exhausted());
        assert_eq!(demangler.name(b"_Z3foov"), "_Z3foov");
        assert!(demangler.name(&vec![0xff; MAX_NAME]).len() <= MAX_NAME + '…'.len_utf8());
    }

    /// A short name whose substitutions double at each step must not become gigabytes.
    #[test]
    fn names_that_explode_are_cut() {
        let mut name = String::from("_Z1fI1aE1bI");
        let mut inner = String::from("1a");
        for depth in 0..24 {
            let back = if depth == 0 { "S_".to_owned() } else { format!("S{}_", base36(depth - 1)) };
            inner = format!("1bI{inner}{back}{back}E");
        }
        name.push_str(&inner);
        name.push('E');
        assert!(demangle(name.as_bytes()).len() <= MAX_NAME + '…'.len_utf8());
        let v0 = format!("_RMC0{}p", "TB1_".repeat(2000));
        assert!(demangle(v0.as_bytes()).len() <= MAX_NAME + '…'.len_utf8());
    }

    fn base36(value: u32) -> String {
        char::from_digit(value, 36).into_iter().collect::<String>().to_uppercase()
    }

    proptest! {
        #[test]
        fn no_name_panics(
            prefix in "(_Z|_R|_ZN|__ZN|)",
            tail in "[_A-Za-z0-9.@]{0,60}",
            raw in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let name = format!("{prefix}{tail}");
            prop_assert!(demangle(name.as_bytes()).len() <= MAX_NAME + 3);
            prop_assert!(demangle(&raw).len() <= MAX_NAME + 3);
        }
    }
}
