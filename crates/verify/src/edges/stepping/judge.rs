//! Compares a walk with the truth.

use abi::stop::Stop;
use abi::word::{self, Word, flag};

/// What a walk is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All frames, and the root behind them.
    Whole,
    /// The innermost frames, and a reason why there are no more.
    Stopped(Stop),
    /// Something that is not so.
    Wrong(Fault),
}

/// What is not so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// The frame with this number, from the innermost on, is another one.
    Frame(usize),
    /// It says that the stack is whole, and frames are missing.
    EndsEarly,
    /// There are more frames than calls.
    GoesOn,
    /// It has no end, or something else than frames.
    NoStack,
}

/// Judges the words of a walk by those that it should have had, without an end.
///
/// That a frame was reached by a frame pointer is no fault by itself.
pub fn judge(walked: &[u64], truth: &[u64]) -> Verdict {
    let Some((last, frames)) = walked.split_last() else { return Verdict::Wrong(Fault::NoStack) };
    let Word::End { stop, .. } = Word::decode(*last) else { return Verdict::Wrong(Fault::NoStack) };
    let Some(stop) = Stop::from_code(stop) else { return Verdict::Wrong(Fault::NoStack) };
    if let Some(other) = frames.iter().zip(truth).position(|(is, should)| plain(*is) != plain(*should)) {
        return Verdict::Wrong(Fault::Frame(other));
    }
    match (stop, frames.len()) {
        (_, count) if count > truth.len() => Verdict::Wrong(Fault::GoesOn),
        (Stop::Root, count) if count < truth.len() => Verdict::Wrong(Fault::EndsEarly),
        (Stop::Root, _) => Verdict::Whole,
        (stop, _) if stop.is_whole() => Verdict::Wrong(Fault::EndsEarly),
        (stop, _) => Verdict::Stopped(stop),
    }
}

/// Whether a frame pointer led to any frame.
pub fn has_frame_pointer(walked: &[u64]) -> bool {
    walked.split_last().is_some_and(|(_, frames)| frames.iter().any(|frame| *frame != plain(*frame)))
}

fn plain(word: u64) -> u64 {
    word & !(u64::from(flag::BY_FRAME_POINTER) << word::TAG_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(stop: Stop) -> u64 {
        word::end(stop as u8, 7, 0)
    }

    #[test]
    fn verdicts() {
        let frame = |offset| word::object(0, 1, offset);
        let truth = [word::object(flag::EXACT, 1, 1), frame(2), frame(3)];
        let with = |count: usize, stop| [&truth[..count], &[end(stop)]].concat();
        assert_eq!(judge(&with(3, Stop::Root), &truth), Verdict::Whole);
        assert_eq!(judge(&with(2, Stop::LostRegister), &truth), Verdict::Stopped(Stop::LostRegister));
        assert_eq!(judge(&with(3, Stop::NoUnwindInfo), &truth), Verdict::Stopped(Stop::NoUnwindInfo));
        assert_eq!(judge(&with(2, Stop::Root), &truth), Verdict::Wrong(Fault::EndsEarly));
        assert_eq!(judge(&with(0, Stop::Execing), &truth), Verdict::Wrong(Fault::EndsEarly));
        let longer = [&truth[..], &[frame(4), end(Stop::NoUnwindInfo)]].concat();
        assert_eq!(judge(&longer, &truth), Verdict::Wrong(Fault::GoesOn));
        let other = [truth[0], frame(9), end(Stop::LostRegister)];
        assert_eq!(judge(&other, &truth), Verdict::Wrong(Fault::Frame(1)));
        let inexact = [frame(1), end(Stop::LostRegister)];
        assert_eq!(judge(&inexact, &truth), Verdict::Wrong(Fault::Frame(0)));
        assert_eq!(judge(&truth, &truth), Verdict::Wrong(Fault::NoStack));
        assert_eq!(judge(&[], &truth), Verdict::Wrong(Fault::NoStack));
    }

    #[test]
    fn a_frame_pointer_is_no_fault() {
        let truth = [word::object(flag::EXACT, 1, 1), word::object(0, 1, 2)];
        let walked = [truth[0], word::object(flag::BY_FRAME_POINTER, 1, 2), end(Stop::Root)];
        assert_eq!(judge(&walked, &truth), Verdict::Whole);
        assert!(has_frame_pointer(&walked));
        assert!(!has_frame_pointer(&truth));
    }
}
