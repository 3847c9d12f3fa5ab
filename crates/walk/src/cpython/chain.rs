//! All frames of a thread that does not run, without its native frames.

use abi::python::{Fault, Python};

use super::{Block, Frame, Kind, Memory, Span, begin, is_code, read_frame};

/// A link of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A function's frame.
    Python {
        /// The frame.
        frame: Frame,
        /// Behind it comes the native code that called Python, and what it says of this.
        outermost: bool,
    },
    /// The place behind the outermost frame of an eval loop (from 3.12 on), with its address.
    Shim(u64),
}

/// The chain of a thread state's frames, innermost first. It ends behind the outermost one, or with a fault.
///
/// Each code object is checked to be one. A chain that leads back into itself is found out by Brent's method, within
/// three times its length.
pub struct Chain<'a, M> {
    memory: &'a mut M,
    python: &'a Python,
    /// The base frame; 0 where there is none.
    base: u64,
    next: Result<u64, Fault>,
    /// A frame that was passed, and comes again only in a circle.
    mark: u64,
    /// Steps until the next mark, and what they are after it.
    until_mark: u32,
    stride: u32,
    left: u32,
    span: Span,
    block: Block,
}

impl<'a, M: Memory> Chain<'a, M> {
    /// At most `limit` links of the chain of the thread state at `state`.
    pub fn new(memory: &'a mut M, python: &'a Python, state: u64, limit: u32) -> Chain<'a, M> {
        let (base, next) = match begin(memory, python, state) {
            Ok(begin) => (begin.base, Ok(begin.frame)),
            Err(fault) => (0, Err(fault)),
        };
        let (span, block) = (Span::of_frame(python), Block::ZERO);
        Chain { memory, python, base, next, mark: 0, until_mark: 1, stride: 1, left: limit, span, block }
    }

    fn step(&mut self, address: u64) -> Result<Option<Step>, Fault> {
        self.count(address)?;
        let (frame, kind, back) = read_frame(self.memory, self.python, self.span, &mut self.block, self.base, address)?;
        self.next = Ok(back);
        // where there is a base frame, nothing else is the last
        if back == 0 && self.base != 0 && kind != Kind::Base {
            return Err(Fault::BadFrame);
        }
        match kind {
            Kind::Base => Ok(None),
            Kind::Shim => Ok(Some(Step::Shim(address))),
            Kind::Inner | Kind::Outermost if !is_code(self.memory, self.python, frame.code) => Err(Fault::NotCode),
            Kind::Inner | Kind::Outermost => Ok(Some(Step::Python { frame, outermost: kind == Kind::Outermost })),
        }
    }

    /// Takes note of a link.
    fn count(&mut self, address: u64) -> Result<(), Fault> {
        if address == self.mark {
            return Err(Fault::Loop);
        }
        self.left = self.left.checked_sub(1).ok_or(Fault::TooMany)?;
        self.until_mark -= 1;
        if self.until_mark == 0 {
            self.stride = self.stride.saturating_mul(2);
            (self.mark, self.until_mark) = (address, self.stride);
        }
        Ok(())
    }
}

impl<M: Memory> Iterator for Chain<'_, M> {
    type Item = Result<Step, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = match self.next {
            Ok(0) => return None,
            Ok(address) => self.step(address),
            Err(fault) => Err(fault),
        };
        if !matches!(step, Ok(Some(_))) {
            self.next = Ok(0);
        }
        step.transpose()
    }
}
