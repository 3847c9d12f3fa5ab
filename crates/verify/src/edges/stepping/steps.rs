//! Steps a process and keeps the truth.

use std::io;

use libc::{c_int, user_regs_struct};
use rustc_hash::FxHashSet;

use super::code::{Effect, Instructions};
use super::memory::{Pages, SignalFrame};
use super::shadow::{Returned, Shadow};
use super::tracee::{Stood, Tracee};

/// The signal that the judge sends once a program has a handler for it.
pub const SENT: c_int = libc::SIGUSR2;
/// So many handlers run at a time through the judge's own signals.
const NESTED: usize = 2;

/// What a run went through, besides its states.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Events {
    /// Instructions that were executed.
    pub steps: u64,
    /// Calls.
    pub calls: u64,
    /// Returns to the call that was made last.
    pub returns: u64,
    /// Returns elsewhere.
    pub strays: u64,
    /// Moves of the stack pointer that left calls behind without a return: `longjmp`, and exceptions.
    pub jumps: u64,
    /// Calls whose return address the program had overwritten when they ended, as libgcc does to land an exception.
    pub overwritten: usize,
    /// Signals that were delivered to a handler.
    pub signals: u64,
    /// Of those, handlers on an alternate stack.
    pub switches: u64,
    /// `rt_sigreturn`.
    pub signal_returns: u64,
    /// Most calls and interruptions at a time.
    pub deepest: usize,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// By itself, with this status.
    Exited(c_int),
    /// By a signal.
    Killed(c_int),
}

/// The kernel or the program did what the truth cannot follow.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// ptrace or waitpid failed.
    #[error("ptrace: {0}")]
    Ptrace(#[from] io::Error),
    /// `rt_sigreturn` did not go back to what was interrupted.
    #[error("rt_sigreturn went to {0:#x}, which no signal interrupted")]
    SignalReturn(u64),
    /// A call did not leave its return address on the stack.
    #[error("the call at {0:#x} left no return address")]
    Call(u64),
}

/// A process that is stepped.
pub struct Steps {
    /// The process.
    pub tracee: Tracee,
    /// The truth.
    pub shadow: Shadow,
    /// What happened.
    pub events: Events,
    /// Its registers now.
    pub registers: user_regs_struct,
    instructions: Instructions,
    /// A signal that is to be delivered with the next step.
    pending: c_int,
    /// Whether the program handles [`SENT`].
    handled: bool,
    sent_at: FxHashSet<u64>,
}

impl Steps {
    /// A process at its entry point, before any call.
    ///
    /// # Errors
    /// If it is gone.
    pub fn new(tracee: Tracee) -> Result<Steps, StepError> {
        let registers = tracee.registers()?;
        Ok(Steps {
            tracee,
            shadow: Shadow::new(),
            events: Events::default(),
            registers,
            instructions: Instructions::default(),
            pending: 0,
            handled: false,
            sent_at: FxHashSet::default(),
        })
    }

    /// Makes one step; `Some` when the process has ended. `mapped` is set if its mappings may have changed.
    ///
    /// # Errors
    /// A [`StepError`].
    pub fn step(&mut self, pages: &mut Pages, mapped: &mut bool) -> Result<Option<Ended>, StepError> {
        let before = self.registers;
        let pid = self.tracee.pid();
        let effect = self.instructions.effect(pid, before.rip);
        let signal = self.signal();
        let action = if effect == Effect::Syscall { self.handler_set(pages) } else { None };
        let stood = self.tracee.step(signal)?;
        pages.forget();
        let stopped_by = match stood {
            Stood::Exited(status) => return Ok(Some(Ended::Exited(status))),
            Stood::Killed(signal) => return Ok(Some(Ended::Killed(signal))),
            Stood::Signal(signal) => signal,
        };
        self.pending = if stopped_by == libc::SIGTRAP { 0 } else { stopped_by };
        self.registers = self.tracee.registers()?;
        if signal != 0 && self.delivered(pages, signal, before.rsp) {
            return Ok(None);
        }
        // before a signal is delivered there is a stop at which nothing was executed
        if self.pending != 0 && (self.registers.rip, self.registers.rsp) == (before.rip, before.rsp) {
            return Ok(None);
        }
        self.events.steps += 1;
        self.executed(&before, effect, pages, mapped)?;
        if let Some(handled) = action {
            self.handled = handled;
        }
        Ok(None)
    }

    /// The signal to be delivered next: the program's own, or one before an instruction that has not been interrupted.
    fn signal(&mut self) -> c_int {
        if self.pending != 0 {
            return self.pending;
        }
        let room = self.handled && self.shadow.signals() < NESTED;
        if room && self.sent_at.insert(self.registers.rip) { SENT } else { 0 }
    }

    /// Whether a handler is about to begin; then the truth has what was interrupted.
    fn delivered(&mut self, pages: &mut Pages, signal: c_int, sp: u64) -> bool {
        let registers = self.registers;
        let Some(frame) = SignalFrame::at(pages, self.tracee.pid(), registers.rsp) else { return false };
        // what the kernel hands to every handler
        let begins = registers.rdi == signal as u64 && registers.rdx == frame.context && frame.sp == sp;
        if begins {
            self.events.signals += 1;
            self.events.switches += u64::from(frame.switched.is_some());
            self.shadow.signal(frame.pc, frame.restorer, frame.context, frame.switched);
            self.events.deepest = self.events.deepest.max(self.shadow.depth());
        }
        begins
    }

    fn executed(
        &mut self,
        before: &user_regs_struct,
        effect: Effect,
        pages: &mut Pages,
        mapped: &mut bool,
    ) -> Result<(), StepError> {
        let (pid, now) = (self.tracee.pid(), self.registers);
        match effect {
            Effect::Call(return_address) if now.rsp == before.rsp.wrapping_sub(8) => {
                if pages.u64(pid, now.rsp) != Some(return_address) {
                    return Err(StepError::Call(before.rip));
                }
                self.shadow.call(return_address, now.rsp);
                self.events.calls += 1;
                self.events.deepest = self.events.deepest.max(self.shadow.depth());
            }
            Effect::Return => match self.shadow.ret(before.rsp, now.rip) {
                Returned::Call => self.events.returns += 1,
                Returned::Elsewhere => self.events.strays += 1,
            },
            Effect::Syscall if before.rax == libc::SYS_rt_sigreturn as u64 => {
                if !self.shadow.signal_return(now.rip) {
                    return Err(StepError::SignalReturn(now.rip));
                }
                self.events.signal_returns += 1;
            }
            Effect::Syscall if changes_mappings(before.rax) => {
                *mapped = true;
                self.instructions.forget();
            }
            Effect::Pop => self.shadow.pop(before.rsp, |slot| pages.u64(pid, slot)),
            _ => {}
        }
        if self.shadow.settle(now.rsp, now.rip, |slot| pages.u64(pid, slot)) > 0 {
            self.events.jumps += 1;
        }
        self.events.overwritten = self.shadow.overwritten();
        Ok(())
    }

    /// Whether the system call that is about to be made gives the program a handler for [`SENT`], or takes it away.
    fn handler_set(&mut self, pages: &mut Pages) -> Option<bool> {
        let registers = &self.registers;
        let sets = registers.rax == libc::SYS_rt_sigaction as u64 && registers.rdi == SENT as u64;
        if !sets || registers.rsi == 0 {
            return None;
        }
        let handler = pages.u64(self.tracee.pid(), registers.rsi)?;
        Some(handler > libc::SIG_IGN as u64)
    }
}

fn changes_mappings(call: u64) -> bool {
    const CALLS: [libc::c_long; 4] = [libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_munmap, libc::SYS_mremap];
    CALLS.iter().any(|known| *known as u64 == call)
}
