//! What may change in a stack while a thread executes one instruction, or native code that calls no eval loop.

use super::stack::{Frame, Stack};

/// Judged instructions within which a frame that is gone does not come back unless it was never gone: to go on behind `yield`, or to be
/// called again, takes more of an eval loop's.
const SOON: u64 = 12;

/// Judged instructions behind a push within which its caller's instruction is stored at the latest: a compiler may move that store over
/// others of the push, of which there are 20 to 30.
const PUSHED: u64 = 40;

/// What cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Break {
    /// More frames came than one instruction makes: one, or from 3.12 on two, since the frame of an `__init__` comes with that of the code
    /// that calls it (Python/bytecodes.c, `CALL_ALLOC_AND_ENTER_INIT`).
    Gained,
    /// More than one frame is gone.
    Lost,
    /// A frame is gone, and another one in its place.
    Replaced,
    /// A frame that waits for what it has called goes on. Right behind a push it may: compilers let the caller's instruction be stored last.
    Moved,
    /// The native frames around Python frames that have stayed are others.
    OtherNatives,
    /// A frame was gone, and is back, though its native frame was there all the time.
    CameBack,
}

/// The stack before, and the frame that was lost last.
#[derive(Default)]
pub struct Continuity {
    before: Option<Stack>,
    lost: Option<Lost>,
    judged: u64,
    /// When the last frame came, in judged stacks.
    pushed_at: u64,
    /// Frames that came, and went.
    pub pushed: u64,
    /// Frames that went.
    pub popped: u64,
}

struct Lost {
    frame: Frame,
    at: u64,
    /// Whether an eval loop without a frame was shown for it.
    bare: bool,
    /// The stack pointer then, and the highest since.
    sp: u64,
    highest: u64,
}

impl Continuity {
    /// The stack that the last one was judged against.
    pub fn before(&self) -> Option<&Stack> {
        self.before.as_ref()
    }

    /// The stack pointer after some instruction, judged or not.
    pub fn pass(&mut self, sp: u64) {
        if let Some(lost) = &mut self.lost {
            lost.highest = lost.highest.max(sp);
        }
    }

    /// Whether a stack is whole and has the frames of the last one.
    pub fn is_unchanged(&self, now: &Stack) -> bool {
        let is_same = |before: &Stack| {
            let is_same = |(one, other): (&Frame, &Frame)| one.code == other.code && one.natives == other.natives;
            before.frames.len() == now.frames.len() && before.frames.iter().zip(&now.frames).all(is_same)
        };
        now.is_whole() && self.before.as_ref().is_some_and(is_same)
    }

    /// The stacks before tell nothing of the next one.
    pub fn forget(&mut self) {
        (self.before, self.lost) = (None, None);
    }

    /// Judges the next whole stack, and takes it to judge the one behind it; the one before if it cannot be.
    pub fn judge(&mut self, now: Stack, sp: u64) -> Option<(Break, Stack)> {
        self.judged += 1;
        self.pass(sp);
        let before = self.before.replace(now)?;
        let now = self.before.as_ref()?;
        let is_new = self.pushed > 0 && self.judged - self.pushed_at <= PUSHED;
        if let Some(found) = compare(&before, now, is_new) {
            self.lost = None;
            return Some((found, before));
        }
        if before.frames.len() < now.frames.len() {
            self.pushed += (now.frames.len() - before.frames.len()) as u64;
            self.pushed_at = self.judged;
            let came_back = self.lost.take().is_some_and(|lost| {
                let is_near = lost.bare || self.judged - lost.at <= SOON;
                now.frames.last() == Some(&lost.frame) && lost.highest <= lost.sp && is_near
            });
            return came_back.then_some((Break::CameBack, before));
        }
        if let Some(frame) = before.frames.get(now.frames.len()) {
            self.popped += 1;
            let bare = now.bare > before.bare;
            self.lost = Some(Lost { frame: *frame, at: self.judged, bare, sp, highest: sp });
        }
        None
    }
}

/// `is_new`: the innermost frame has just come.
fn compare(before: &Stack, now: &Stack, is_new: bool) -> Option<Break> {
    let (old, new) = (&before.frames, &now.frames);
    let is_same = |(one, other): &(&Frame, &Frame)| one.code == other.code && one.natives == other.natives;
    let kept = old.iter().zip(new).take_while(is_same).count();
    let (lost, gained) = (old.len() - kept, new.len() - kept);
    match (lost, gained) {
        (0, 3..) => return Some(Break::Gained),
        (2.., 0) => return Some(Break::Lost),
        (1.., 1..) => return Some(Break::Replaced),
        _ => {}
    }
    let going_on = match (lost, gained) {
        (0, 0) if is_new => 2,
        (0, 0) => 1,
        _ => 0,
    };
    let waiting = kept.saturating_sub(going_on);
    if old.iter().zip(new).take(waiting).any(|(one, other)| one.instruction != other.instruction) {
        return Some(Break::Moved);
    }
    let around = new[..kept].last().map_or(0, |frame| frame.natives);
    (before.natives.get(..around) != now.natives.get(..around)).then_some(Break::OtherNatives)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[(u64, u32)]) -> Stack {
        let frames =
            frames.iter().map(|(code, instruction)| Frame { code: *code, instruction: *instruction, natives: 1 });
        Stack { frames: frames.collect(), natives: vec![5], ..Stack::default() }
    }

    fn judged(stacks: &[(Stack, u64)]) -> Vec<Option<Break>> {
        let mut continuity = Continuity::default();
        stacks.iter().map(|(stack, sp)| continuity.judge(stack.clone(), *sp).map(|(found, _)| found)).collect()
    }

    #[test]
    fn the_instruction_may_be_stored_behind_the_push() {
        let all = [&[(1, 4)][..], &[(1, 4), (2, 0)], &[(1, 5), (2, 0)]].map(|frames| (stack(frames), 0));
        assert_eq!(judged(&all), [None; 3]);
        let again = |times| std::iter::repeat_n((stack(&[(1, 4), (2, 0)]), 0), times);
        let late: Vec<_> =
            all[..1].iter().cloned().chain(again(PUSHED as usize + 1)).chain(all[2..].to_vec()).collect();
        assert_eq!(judged(&late).pop().flatten(), Some(Break::Moved));
    }

    fn second(one: &[(u64, u32)], other: &[(u64, u32)]) -> Option<Break> {
        judged(&[(stack(one), 0), (stack(other), 0)])[1]
    }

    #[test]
    fn what_may_be() {
        assert_eq!(second(&[(1, 4)], &[(1, 6)]), None);
        assert_eq!(second(&[(1, 4)], &[(1, 4), (2, 0)]), None);
        assert_eq!(second(&[(1, 4), (2, 8)], &[(1, 4)]), None);
        assert_eq!(second(&[(1, 4), (1, 8)], &[(1, 4), (1, 9)]), None);
    }

    #[test]
    fn what_cannot_be() {
        assert_eq!(second(&[(1, 4)], &[(1, 4), (2, 0), (3, 0), (4, 0)]), Some(Break::Gained));
        assert_eq!(second(&[(1, 4), (2, 0), (3, 0)], &[(1, 4)]), Some(Break::Lost));
        assert_eq!(second(&[(1, 4), (2, 0)], &[(2, 0)]), Some(Break::Replaced));
        assert_eq!(second(&[(1, 4), (2, 0)], &[(1, 5), (2, 0)]), Some(Break::Moved));
        assert_eq!(second(&[(1, 4), (2, 0)], &[(1, 5)]), Some(Break::Moved));
        let other = Stack { natives: vec![6], ..stack(&[(1, 4)]) };
        assert_eq!(judged(&[(stack(&[(1, 4)]), 0), (other, 0)])[1], Some(Break::OtherNatives));
    }

    #[test]
    fn a_frame_comes_back() {
        let (one, two) = (stack(&[(1, 4)]), stack(&[(1, 4), (2, 7)]));
        let again = |gone: Stack, times: usize, sp: u64| {
            let between = (0..times).map(|index| (gone.clone(), if index == 0 { 100 } else { sp }));
            let all: Vec<_> = [(two.clone(), 100)].into_iter().chain(between).chain([(two.clone(), 100)]).collect();
            judged(&all).pop().flatten()
        };
        assert_eq!(again(one.clone(), 3, 100), Some(Break::CameBack));
        assert_eq!(again(one.clone(), 3, 120), None, "its native frame was left");
        assert_eq!(again(one.clone(), 40, 100), None, "resumed");
        let bare = Stack { bare: 1, ..one };
        assert_eq!(again(bare, 40, 100), Some(Break::CameBack));
    }
}
