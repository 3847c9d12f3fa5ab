//! The verdict over all stacks of a process.

use std::collections::BTreeMap;

use super::calls::Calls;
use super::chain;
use super::label::{Label, Python};
use super::sampled::Sampled;
use super::truth::Told;
use crate::support::folded::Stack;

/// What is demanded, apart from that no stack is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Whether lines are shown.
    pub(crate) lines: bool,
    /// Whether threads count whose stack is told in part only: those that warm up.
    pub(crate) warm_up: bool,
    /// So large a share of the stacks may be cut within Python, if they say so.
    pub(crate) cut: f64,
    /// So large a share may stop before its root.
    pub(crate) stopped: f64,
}

impl Wanted {
    /// As it should be: one in a thousand is cut, one in two hundred stopped.
    pub(crate) fn with_lines(lines: bool) -> Wanted {
        Wanted { lines, warm_up: false, cut: 0.001, stopped: 0.005 }
    }
}

/// How far a count may be off.
const ERRORS: f64 = 5.0;
/// So many reasons are listed.
const LISTED: usize = 12;

/// Counts of samples.
#[derive(Default, Debug)]
pub(crate) struct Verdict {
    pub(crate) right: u64,
    pub(crate) cut: BTreeMap<String, u64>,
    pub(crate) stopped: BTreeMap<String, u64>,
    /// Of the process's end, without a stack.
    pub(crate) leaving: u64,
    /// Reason and stack.
    pub(crate) wrong: Vec<(String, Sampled)>,
    /// Right ones, by thread.
    pub(crate) threads: BTreeMap<String, u64>,
}

/// Python frames, outermost first.
pub(crate) fn python(frames: &[Label]) -> impl Iterator<Item = &Python> {
    frames.iter().filter_map(|frame| match frame {
        Label::Python(python) => Some(python),
        _ => None,
    })
}

/// Whether a marker says that frames are missing.
pub(crate) fn is_cut(frames: &[Label]) -> bool {
    frames.iter().any(|frame| matches!(frame, Label::PythonMarker(_) | Label::Stopped(_)))
}

/// What must be true of any stack: the kernel comes last, and of the interpreter's own loop there is at most one that has no
/// Python frame yet or no more, which is the innermost.
fn order(frames: &[Label]) -> Result<(), String> {
    let user = frames.iter().take_while(|frame| !matches!(frame, Label::Kernel(_))).count();
    if frames[user..].iter().any(|frame| !matches!(frame, Label::Kernel(_))) {
        return Err("user frames below kernel frames".to_owned());
    }
    let loops: Vec<usize> = (0..frames.len()).filter(|index| matches!(frames[*index], Label::EvalLoop(_))).collect();
    let is_last = |at: usize| !frames[at..].iter().any(|frame| matches!(frame, Label::Python(_)));
    match loops.as_slice() {
        [] => Ok(()),
        [at] if is_last(*at) => Ok(()),
        _ if is_cut(frames) => Ok(()),
        _ => Err("an eval loop without its Python frames".to_owned()),
    }
}

/// Between two Python functions is C where C called the second, and nothing where the interpreter itself did.
fn between(frames: &[Label], told: &Told) -> Result<(), String> {
    let mut last: Option<(&Python, usize)> = None;
    for (index, frame) in frames.iter().enumerate() {
        let Label::Python(shown) = frame else { continue };
        if let Some((caller, at)) = last.replace((shown, index)) {
            let pair = (caller.name.clone(), shown.name.clone());
            let others = index - at - 1;
            if others == 0 && told.through_c.contains(&pair) {
                return Err(format!("C is missing between {} and {}", pair.0, pair.1));
            }
            if others > 0 && told.minor() >= 11 && told.direct.contains(&pair) {
                return Err(format!("nothing is between {} and {}", pair.0, pair.1));
            }
        }
    }
    Ok(())
}

impl Verdict {
    /// Judges the stacks of a process that has told of itself.
    pub(crate) fn over<'a>(stacks: impl IntoIterator<Item = &'a Stack>, told: &Told, wanted: Wanted) -> Verdict {
        Verdict::of(stacks.into_iter().map(|stack| Sampled::folded(stack, told)), told, wanted)
    }

    /// Judges stacks of any format.
    pub(crate) fn of(stacks: impl IntoIterator<Item = Sampled>, told: &Told, wanted: Wanted) -> Verdict {
        let mut verdict = Verdict::default();
        let calls = Calls::new(told, wanted.lines);
        for stack in stacks {
            verdict.judge(stack, told, &calls, wanted);
        }
        verdict
    }

    fn judge(&mut self, stack: Sampled, told: &Told, calls: &Calls<'_>, wanted: Wanted) {
        if stack.is_leaving {
            self.leaving += stack.count;
            return;
        }
        let (name, frames) = (&stack.thread, &stack.frames);
        if !wanted.warm_up && told.threads.get(name).is_some_and(|thread| thread.tails.is_none()) {
            return;
        }
        let judged = order(frames).and_then(|()| between(frames, told));
        let judged = judged.and_then(|()| match told.threads.get(name) {
            Some(thread) => {
                let of_kind = thread.tails.as_ref().and_then(|kind| told.tails.get(kind));
                // what follows where no kind is told may be anything
                let open = [vec![None]];
                chain::judge(frames, thread, of_kind.map_or(&open, Vec::as_slice), wanted.lines)
            }
            None if told.cpu.contains_key(name) => calls.judge(frames),
            None => Err(format!("thread {name:?} is not known")),
        });
        if let Err(reason) = judged {
            let case = told.threads.get(name).map_or(name, |thread| &thread.case);
            let reason = format!("{case}: {reason}");
            self.wrong.push((reason, stack));
            return;
        }
        *self.threads.entry(name.to_owned()).or_default() += stack.count;
        self.count(frames, stack.count);
    }

    fn count(&mut self, frames: &[Label], count: u64) {
        let of = |is: fn(&Label) -> Option<&String>| frames.iter().find_map(is).cloned();
        let cut = of(|frame| if let Label::PythonMarker(text) = frame { Some(text) } else { None });
        let stopped = of(|frame| if let Label::Stopped(text) = frame { Some(text) } else { None });
        match (cut, stopped) {
            (Some(cut), _) => *self.cut.entry(cut).or_default() += count,
            (None, Some(stopped)) => *self.stopped.entry(stopped).or_default() += count,
            (None, None) => self.right += count,
        }
    }

    /// All that stayed.
    pub(crate) fn all(&self) -> u64 {
        let wrong = self.wrong.iter().map(|(_, stack)| stack.count).sum::<u64>();
        self.right + self.cut.values().sum::<u64>() + self.stopped.values().sum::<u64>() + wrong
    }

    /// What is wrong with it, if anything.
    pub(crate) fn problems(&self, wanted: Wanted) -> Vec<String> {
        let all = self.all();
        let mut problems = Vec::new();
        if all == 0 {
            problems.push("no samples".to_owned());
        }
        let count: u64 = self.wrong.iter().map(|(_, stack)| stack.count).sum();
        if count > 0 {
            problems.push(format!("{count} of {all} stacks are wrong:\n{}", self.list()));
        }
        for (what, counts, share) in [("cut", &self.cut, wanted.cut), ("stopped", &self.stopped, wanted.stopped)] {
            let count = counts.values().sum::<u64>() as f64;
            let expected = share * all as f64;
            if count > expected + ERRORS * expected.sqrt() {
                problems.push(format!("{count} of {all} stacks are {what}: {counts:?}"));
            }
        }
        problems
    }

    /// Why they are wrong, the most frequent reasons first, with a stack for each.
    fn list(&self) -> String {
        let mut reasons: BTreeMap<&str, (u64, &Sampled)> = BTreeMap::new();
        for (reason, stack) in &self.wrong {
            reasons.entry(reason).or_insert((0, stack)).0 += stack.count;
        }
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let lines = reasons
            .iter()
            .take(LISTED)
            .map(|(reason, (count, stack))| format!("  {count} x {reason}, as in\n    {}", shortened(&stack.shown)));
        let left_out = reasons.len().saturating_sub(LISTED);
        lines.chain((left_out > 0).then(|| format!("  and {left_out} more"))).collect::<Vec<_>>().join("\n")
    }
}

/// The innermost frames tell more.
fn shortened(parts: &[String]) -> String {
    const SHOWN: usize = 60;
    match parts.len().checked_sub(SHOWN) {
        None | Some(0) => parts.join(";"),
        Some(left_out) => {
            format!("{};... {left_out} ...;{}", parts[..10].join(";"), parts[left_out + 10..].join(";"))
        }
    }
}
