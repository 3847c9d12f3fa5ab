//! /proc/PID/stat.

use crate::Comm;

/// What a process is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// `R`: on a CPU, or waiting for one.
    Running,
    /// `S`: waiting, can be interrupted.
    Sleeping,
    /// `D`: waiting, cannot be interrupted.
    DiskSleep,
    /// `T`, `t`: stopped by a signal or a debugger.
    Stopped,
    /// `Z`: it has ended, its parent has not noticed yet.
    Zombie,
    /// `X`: about to vanish.
    Dead,
    /// `I`: an idle kernel thread.
    Idle,
    /// Another letter.
    Other(u8),
}

/// Status of a process, or of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub comm: Comm,
    /// What it is doing.
    pub state: State,
    /// Its parent; 0 for those that the kernel started.
    pub parent: u32,
    /// It runs in the kernel only.
    pub is_kernel_thread: bool,
    /// It has begun to end: its memory is being given up.
    pub is_exiting: bool,
    /// Number of threads.
    pub threads: u32,
    /// When it started: clock ticks (`_SC_CLK_TCK`, 100 a second) since boot. Tells a process from an earlier one
    /// with the same id.
    pub start_ticks: u64,
}

/// `PF_KTHREAD` in the flags of a task (`include/linux/sched.h`).
const PF_KTHREAD: u64 = 0x0020_0000;
/// `PF_EXITING`, set before the memory is given up (`do_exit` in kernel/exit.c).
const PF_EXITING: u64 = 0x0000_0004;

impl Stat {
    /// Parses the line. The name is in parentheses and may hold anything, so fields are counted from the last `)`.
    pub fn parse(line: &[u8]) -> Option<Stat> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')').filter(|close| *close > open)?;
        let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
        let fields: Vec<&str> = std::str::from_utf8(&line[close + 1..]).ok()?.split_ascii_whitespace().collect();
        // numbered as in proc_pid_stat(5), where the state is field 3
        let field = |number: usize| fields.get(number - 3).copied();
        let flags: u64 = field(9)?.parse().ok()?;
        Some(Stat {
            pid,
            comm: Comm::new(&line[open + 1..close]),
            state: State::from_letter(*field(3)?.as_bytes().first()?),
            parent: field(4)?.parse().ok()?,
            is_kernel_thread: flags & PF_KTHREAD != 0,
            is_exiting: flags & PF_EXITING != 0,
            threads: field(20)?.parse().ok()?,
            start_ticks: field(22)?.parse().ok()?,
        })
    }
}

impl State {
    fn from_letter(letter: u8) -> State {
        match letter {
            b'R' => State::Running,
            b'S' => State::Sleeping,
            b'D' => State::DiskSleep,
            b'T' | b't' => State::Stopped,
            b'Z' => State::Zombie,
            b'X' | b'x' => State::Dead,
            b'I' => State::Idle,
            other => State::Other(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "4711 (a) R (b)) S 12 4711 4711 0 -1 4194560 1 0 0 0 1 2 3 4 20 0 7 0 8888 1000 20 184467 1 1";

    #[test]
    fn a_name_with_parentheses() -> Result<(), &'static str> {
        let stat = Stat::parse(LINE.as_bytes()).ok_or("not parsed")?;
        let expected = Stat {
            pid: 4711,
            comm: Comm::new(b"a) R (b)"),
            state: State::Sleeping,
            parent: 12,
            is_kernel_thread: false,
            is_exiting: false,
            threads: 7,
            start_ticks: 8888,
        };
        assert_eq!(stat, expected);
        Ok(())
    }

    #[test]
    fn kernel_threads_have_the_flag() -> Result<(), &'static str> {
        let line = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 2 0 0";
        assert!(Stat::parse(line.as_bytes()).ok_or("not parsed")?.is_kernel_thread);
        Ok(())
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Stat::parse(&bytes);
        }

        #[test]
        fn one_byte_changed(at in 0..LINE.len(), byte: u8) {
            let mut line = LINE.as_bytes().to_vec();
            line[at] = byte;
            if let Some(stat) = Stat::parse(&line) {
                prop_assert!(stat.comm.as_bytes().len() < 16);
            }
        }

        #[test]
        fn any_name(name in prop::collection::vec(1u8..=255, 0..16)) {
            let mut line = b"1 (".to_vec();
            line.extend(&name);
            line.extend(b") Z 0 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0");
            let stat = Stat::parse(&line);
            prop_assert_eq!(stat.map(|stat| (stat.comm, stat.state)), Some((Comm::new(&name), State::Zombie)));
        }
    }
}
