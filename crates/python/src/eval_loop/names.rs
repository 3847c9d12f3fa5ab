//! Names of the eval loop's functions, as CPython's sources and compilers make them.

/// The eval loop since 3.6 (Python/ceval.c). `PyEval_EvalFrameEx` has been a function that calls it ever since.
pub(super) const EVAL_LOOP: &str = "_PyEval_EvalFrameDefault";
/// What the functions for the single instructions begin with where the loop consists of calls in tail position (since 3.14,
/// `--with-tail-call-interp`; Python/ceval_macros.h).
const HANDLER: &[u8] = b"_TAIL_CALL_";

/// What a name says of its function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    /// The eval loop, or what was split off from it.
    Loop,
    /// A function that a compiler made out of a part of it, or a variant.
    Clone,
    /// A function for one instruction or label, or what was split off from one.
    Handler,
}

impl Family {
    pub(super) fn of(name: &[u8]) -> Option<Family> {
        if name.starts_with(HANDLER) {
            return Some(Family::Handler);
        }
        let suffixes = name.strip_prefix(EVAL_LOOP.as_bytes())?;
        if suffixes.is_empty() {
            return Some(Family::Loop);
        }
        let mut words = suffixes.strip_prefix(b".")?.split(|byte| *byte == b'.');
        // gcc: `.cold`, `.cold.1`; BOLT: `.cold.0`; gcc's `.part.0.cold` is split off from `.part.0`
        let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
        Some(if words.all(|word| is_same(word) || is_number(word)) { Family::Loop } else { Family::Clone })
    }
}

/// Suffixes of what is the same function: split off from it, or renamed.
fn is_same(word: &[u8]) -> bool {
    matches!(word, b"cold" | b"warm" | b"unlikely" | b"localalias" | b"lto_priv" | b"llvm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_whose_they_are() {
        let of = |name: &str| Family::of(name.as_bytes());
        for name in ["", ".cold", ".cold.1", ".cold.0", ".llvm.1234567", ".lto_priv.0.cold"] {
            assert_eq!(of(&format!("{EVAL_LOOP}{name}")), Some(Family::Loop), "{name}");
        }
        for name in [".part.0", ".constprop.0", ".isra.0.constprop.1", ".part.0.cold"] {
            assert_eq!(of(&format!("{EVAL_LOOP}{name}")), Some(Family::Clone), "{name}");
        }
        assert_eq!(of("_TAIL_CALL_BINARY_OP.cold.0"), Some(Family::Handler));
        for name in ["PyEval_EvalFrameEx", "_PyEval_EvalFrameDefaults", "_PyEval_EvalFrame", ""] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
