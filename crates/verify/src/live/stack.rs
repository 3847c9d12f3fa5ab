//! A user stack in a form that both sides can be brought into.

use abi::process::Mapping;
use abi::stop::Stop;
use abi::word::Word;
use framehop::FrameAddress;

use crate::rows::Mode;

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// In a file, by offset.
    File {
        /// Number of the object.
        object: u32,
        /// Offset of the pc.
        offset: u64,
    },
    /// Elsewhere, by address.
    Address(u64),
}

/// Our stack: frames, innermost first, with how each is looked up, and why it ends.
pub(super) struct Ours {
    pub(super) frames: Vec<(Frame, Mode)>,
    pub(super) stop: Option<Stop>,
    /// Frames in the middle were left out.
    pub(super) cut: bool,
}

impl Ours {
    /// The user's part of a stack.
    pub(super) fn of(words: &[u64]) -> Ours {
        let mut ours = Ours { frames: Vec::new(), stop: None, cut: false };
        for word in words {
            match Word::decode(*word) {
                Word::Object { object, offset, exact, .. } => ours.push(Frame::File { object, offset }, exact),
                Word::Raw { address, exact, .. } => ours.push(Frame::Address(address), exact),
                Word::Cut(_) => ours.cut = true,
                Word::End { stop, .. } => ours.stop = Stop::from_code(stop),
                // a recording with a witness has native frames only
                Word::Python(_) | Word::PythonAt { .. } | Word::PythonFault(_) => {}
                Word::Kernel(_) | Word::Unknown(_) => {}
            }
        }
        ours
    }

    fn push(&mut self, frame: Frame, exact: bool) {
        self.frames.push((frame, if exact { Mode::Interrupted } else { Mode::Called }));
    }

    /// The frames without how they are looked up.
    pub(super) fn places(&self) -> impl Iterator<Item = Frame> {
        self.frames.iter().map(|(frame, _)| *frame)
    }
}

impl Frame {
    /// A frame of framehop's.
    pub(super) fn of(frame: FrameAddress, mappings: &[Mapping]) -> Frame {
        let (pc, lookup) = (frame.address(), frame.address_for_lookup());
        let after = mappings.partition_point(|mapping| mapping.begin <= lookup);
        match mappings[..after].last().filter(|mapping| lookup < mapping.end && mapping.object != 0) {
            Some(mapping) => Frame::File { object: mapping.object, offset: pc - mapping.begin + mapping.file_offset },
            None => Frame::Address(pc),
        }
    }
}
