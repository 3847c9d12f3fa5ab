//! One sample: our stack against framehop's.

use abi::stop::Stop;

use super::modules::End;
use super::stack::{Frame, Ours};

/// What a comparison came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The same frames, and the same end.
    Equal,
    /// The same frames as far as memory was copied.
    EqualInCopy,
    /// The sides take different ways out of the last frame that they share.
    Differ {
        /// How many frames both have.
        same: usize,
        /// How ours goes on.
        ours: Next,
        /// How framehop goes on.
        theirs: Next,
    },
}

/// What follows a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// A caller.
    Caller,
    /// The end of the stack.
    Root,
    /// A named stop of ours.
    Stop(Stop),
    /// An error of framehop's.
    Error(framehop::Error),
}

/// Compares; `theirs` are its frames.
pub(super) fn compare(ours: &Ours, theirs: &[Frame], end: End) -> Outcome {
    let same = ours.places().zip(theirs).take_while(|(ours, theirs)| ours == *theirs).count();
    let next_of_ours = match ours.stop {
        _ if same < ours.frames.len() => Next::Caller,
        Some(Stop::Root) => Next::Root,
        Some(Stop::CopyEnds) => return Outcome::EqualInCopy,
        // both were led out of all code: framehop gives the address, ours the reason
        Some(Stop::NoMapping) if matches!(theirs.get(same), Some(Frame::Address(_))) => return Outcome::Equal,
        Some(stop) => Next::Stop(stop),
        None => Next::Caller,
    };
    let next_of_theirs = match end {
        _ if same < theirs.len() => Next::Caller,
        End::Root => Next::Root,
        End::CopyEnds => return Outcome::EqualInCopy,
        End::Failed(error) => Next::Error(error),
        // as many frames as ours has, and so far the same
        End::Enough => return Outcome::EqualInCopy,
    };
    match (next_of_ours, next_of_theirs) {
        (Next::Root, Next::Root) => Outcome::Equal,
        (ours, theirs) => Outcome::Differ { same, ours, theirs },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::word;

    const FILE: u32 = 7;

    fn ours(offsets: &[u64], stop: Stop) -> Ours {
        let frames = offsets.iter().map(|offset| word::object(0, FILE, *offset));
        let words: Vec<u64> = frames.chain([word::end(stop as u8, 0, 0)]).collect();
        Ours::of(&words)
    }

    fn theirs(offsets: &[u64]) -> Vec<Frame> {
        offsets.iter().map(|offset| Frame::File { object: FILE, offset: *offset }).collect()
    }

    #[test]
    fn equal_stacks() {
        let whole = ours(&[1, 2, 3], Stop::Root);
        assert_eq!(compare(&whole, &theirs(&[1, 2, 3]), End::Root), Outcome::Equal);
        assert_eq!(compare(&whole, &theirs(&[1, 2]), End::CopyEnds), Outcome::EqualInCopy);
        let lost = ours(&[1, 2], Stop::NoMapping);
        let beyond = [theirs(&[1, 2]), vec![Frame::Address(0x1234)]].concat();
        assert_eq!(compare(&lost, &beyond, End::CopyEnds), Outcome::Equal);
    }

    #[test]
    fn each_way_to_differ() {
        let whole = ours(&[1, 2, 3], Stop::Root);
        let differ = |same, ours, theirs| Outcome::Differ { same, ours, theirs };
        assert_eq!(compare(&whole, &theirs(&[1, 9, 3]), End::Root), differ(1, Next::Caller, Next::Caller));
        assert_eq!(compare(&whole, &theirs(&[1, 2, 3, 4]), End::Root), differ(3, Next::Root, Next::Caller));
        assert_eq!(compare(&whole, &theirs(&[1, 2]), End::Root), differ(2, Next::Caller, Next::Root));
        let stopped = ours(&[1, 2], Stop::NoUnwindInfo);
        let theirs = compare(&stopped, &theirs(&[1, 2, 3]), End::Root);
        assert_eq!(theirs, differ(2, Next::Stop(Stop::NoUnwindInfo), Next::Caller));
    }
}
