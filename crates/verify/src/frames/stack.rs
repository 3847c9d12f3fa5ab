//! A stack as it is judged: outermost frame first, native eval loops left out.

use abi::python::Fault;
use abi::stop::Stop;
use abi::word::Word;

/// A Python frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Address of its code object.
    pub code: u64,
    /// Where in it, as the walk says.
    pub instruction: u32,
    /// How many native frames are further out.
    pub natives: usize,
}

/// A walked stack.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stack {
    /// Python frames.
    pub frames: Vec<Frame>,
    /// Words of the native frames that are in no eval loop.
    pub natives: Vec<u64>,
    /// How many native frames of eval loops are shown, since they have no Python frame.
    pub bare: usize,
    /// Why Python frames are missing.
    pub faults: Vec<Fault>,
    /// Why it ends, if not at its root.
    pub cut: Option<Stop>,
}

impl Stack {
    /// Of the words of a walk, innermost first; `is_eval_loop` says it of the word of a native frame.
    pub fn of(words: &[u64], is_eval_loop: impl Fn(u64) -> bool) -> Stack {
        let mut stack = Stack::default();
        let mut instruction = 0;
        for &word in words.iter().rev() {
            match Word::decode(word) {
                Word::PythonAt { instruction: at, .. } => instruction = at,
                Word::Python(code) => stack.frames.push(Frame { code, instruction, natives: stack.natives.len() }),
                Word::PythonFault(code) => stack.faults.extend(Fault::from_code(code)),
                Word::End { stop, .. } => stack.cut = Stop::from_code(stop).filter(|stop| *stop != Stop::Root),
                _ if is_eval_loop(word) => stack.bare += 1,
                _ => stack.natives.push(word),
            }
        }
        stack
    }

    /// Whether it says of nothing that it is missing.
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty() && self.cut.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::word;

    #[test]
    fn words_are_taken_apart() {
        let (loops, native) = (word::raw(0, 0x1000), word::raw(0, 0x2000));
        let fault = word::python_fault(Fault::NotCode as u8);
        let frame = |code, at| [word::python(code), word::python_at(7, at)];
        let words = [&[loops][..], &frame(30, 3), &[native], &frame(20, 2), &frame(10, 1), &[native, native]].concat();
        let whole = Stack::of(&[&words[..], &[word::end(Stop::Root as u8, 0, 0)]].concat(), |word| word == loops);
        let of = |code, instruction, natives| Frame { code, instruction, natives };
        assert_eq!(whole.frames, [of(10, 1, 2), of(20, 2, 2), of(30, 3, 3)]);
        assert!(whole.is_whole() && (whole.bare, whole.natives.len()) == (1, 3), "{whole:?}");
        let cut = Stack::of(&[fault, word::end(Stop::NoCall as u8, 0, 0)], |_| false);
        assert_eq!((cut.faults.as_slice(), cut.cut), (&[Fault::NotCode][..], Some(Stop::NoCall)));
    }
}
