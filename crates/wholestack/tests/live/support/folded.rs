//! Folded stacks, read back.

/// A line of a folded file.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// Process, thread where it is called otherwise, and frames, outermost first.
    pub(crate) parts: Vec<String>,
    /// Samples.
    pub(crate) count: u64,
}

/// How a stack ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// At its root, as far as the profiler says.
    Whole,
    /// The process was ending or replacing its image: there was no user stack any more.
    Leaving,
    /// Somewhere else, with a reason.
    Stopped,
}

const EXITING: &str = "[process exiting, its memory is gone]";
const EXECING: &str = "[process replaces its image (exec)]";

impl Stack {
    fn parse(line: &str) -> Stack {
        let (stack, count) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no count: {line:?}"));
        let count = count.parse().unwrap_or_else(|_| panic!("no count: {line:?}"));
        Stack { parts: stack.split(';').map(str::to_owned).collect(), count }
    }

    /// Name of the process.
    pub(crate) fn process(&self) -> &str {
        &self.parts[0]
    }

    /// Frames of the kernel, outermost first.
    pub(crate) fn kernel(&self) -> Vec<&str> {
        self.frames().into_iter().filter(|frame| is_kernel(frame)).collect()
    }

    /// Frames of the process itself, outermost first; the thread's name may be the first.
    pub(crate) fn user(&self) -> Vec<&str> {
        self.frames().into_iter().filter(|frame| !is_kernel(frame)).collect()
    }

    /// What the user frames are from this function on, which has to be there, and whose callers have to reach back to
    /// the program's entry point.
    pub(crate) fn from(&self, function: &str) -> Option<Vec<&str>> {
        let user = self.user();
        let at = user.iter().position(|frame| *frame == function)?;
        let entered = user[..at].iter().any(|frame| ENTRIES.contains(frame));
        entered.then(|| user[at..].to_vec())
    }

    /// Whether the stack has this frame.
    pub(crate) fn has(&self, frame: &str) -> bool {
        self.frames().contains(&frame)
    }

    pub(crate) fn end(&self) -> End {
        let frames = self.frames();
        if frames.iter().any(|frame| frame.starts_with("[stopped: ")) {
            End::Stopped
        } else if frames.iter().any(|frame| [EXITING, EXECING].contains(frame)) {
            End::Leaving
        } else {
            End::Whole
        }
    }

    fn frames(&self) -> Vec<&str> {
        self.parts[1..].iter().map(String::as_str).collect()
    }
}

/// Where threads of programs begin: C's, threads of libc, Go's.
const ENTRIES: [&str; 6] = ["_start", "clone3", "__clone3", "clone", "__clone", "runtime.goexit.abi0"];

fn is_kernel(frame: &str) -> bool {
    frame.ends_with("_[k]")
}

/// All lines.
pub(crate) fn parse(text: &str) -> Vec<Stack> {
    text.lines().map(Stack::parse).collect()
}

/// Samples of all.
pub(crate) fn total<'a>(stacks: impl IntoIterator<Item = &'a Stack>) -> u64 {
    stacks.into_iter().map(|stack| stack.count).sum()
}
