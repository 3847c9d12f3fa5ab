//! A process under ptrace (ptrace(2)), and its end.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_void, pid_t, user_regs_struct};

/// A process that is stopped whenever it is not inside of a call of these functions; it ends with this value.
///
/// All calls must come from the thread that started it: to the kernel that one is the tracer.
#[derive(Debug)]
pub struct Tracee {
    pid: pid_t,
    ended: bool,
}

/// Why a process stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stood {
    /// A signal is about to be delivered; SIGTRAP: a step was made.
    Signal(c_int),
    /// It has exited with this status.
    Exited(c_int),
    /// A signal has ended it.
    Killed(c_int),
}

impl Tracee {
    /// Starts a program and stops it before its first instruction.
    ///
    /// # Errors
    /// If it cannot be started or not be traced.
    pub fn start(command: &mut Command) -> io::Result<Tracee> {
        // SAFETY: between fork and exec the child makes system calls only, and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                request(libc::PTRACE_TRACEME, 0, 0, 0)?;
                // the same addresses each time
                if libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) == -1 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn()?;
        let mut tracee = Tracee { pid: child.id() as pid_t, ended: false };
        match tracee.wait()? {
            Stood::Signal(libc::SIGTRAP) => {}
            other => return Err(io::Error::other(format!("no stop at exec: {other:?}"))),
        }
        let options = libc::PTRACE_O_EXITKILL as usize;
        request(libc::PTRACE_SETOPTIONS, tracee.pid, 0, options)?;
        Ok(tracee)
    }

    /// Stops a child of this process that runs already.
    ///
    /// # Errors
    /// If it has ended or may not be traced.
    pub fn attach(pid: u32) -> io::Result<Tracee> {
        let mut tracee = Tracee { pid: pid as pid_t, ended: false };
        request(libc::PTRACE_ATTACH, tracee.pid, 0, 0)?;
        match tracee.wait()? {
            Stood::Signal(libc::SIGSTOP) => {}
            other => return Err(io::Error::other(format!("no stop when attached: {other:?}"))),
        }
        request(libc::PTRACE_SETOPTIONS, tracee.pid, 0, libc::PTRACE_O_EXITKILL as usize)?;
        Ok(tracee)
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Its registers.
    ///
    /// # Errors
    /// If it has ended.
    pub fn registers(&self) -> io::Result<user_regs_struct> {
        // SAFETY: plain integers, for which zero is a value.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETREGS, self.pid, 0, (&raw mut registers) as usize)?;
        Ok(registers)
    }

    fn set_registers(&self, registers: &user_regs_struct) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, self.pid, 0, (&raw const *registers) as usize)
    }

    /// Lets it run one instruction, or begin to handle `signal` if that is not 0.
    ///
    /// # Errors
    /// If it has ended.
    pub fn step(&mut self, signal: c_int) -> io::Result<Stood> {
        request(libc::PTRACE_SINGLESTEP, self.pid, 0, signal as usize)?;
        self.wait()
    }

    /// Lets it run to the instruction at `address`, which it must come to.
    ///
    /// # Errors
    /// If it does not get there.
    pub fn run_to(&mut self, address: u64) -> io::Result<()> {
        if self.registers()?.rip == address {
            return Ok(());
        }
        const INT3: u64 = 0xcc;
        let mut code = [0; 8];
        if processes::memory::read_memory(self.pid(), address, &mut code)? != code.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let code = u64::from_le_bytes(code);
        request(libc::PTRACE_POKETEXT, self.pid, address as usize, (code & !0xff | INT3) as usize)?;
        request(libc::PTRACE_CONT, self.pid, 0, 0)?;
        let stood = self.wait()?;
        let mut registers = self.registers()?;
        if stood != Stood::Signal(libc::SIGTRAP) || registers.rip != address + 1 {
            return Err(io::Error::other(format!("did not come to {address:#x}: {stood:?} at {:#x}", registers.rip)));
        }
        request(libc::PTRACE_POKETEXT, self.pid, address as usize, code as usize)?;
        registers.rip = address;
        self.set_registers(&registers)
    }

    fn wait(&mut self) -> io::Result<Stood> {
        let mut status = 0;
        loop {
            // SAFETY: `status` outlives the call.
            if unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) } != -1 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        if libc::WIFSTOPPED(status) {
            return Ok(Stood::Signal(libc::WSTOPSIG(status)));
        }
        self.ended = true;
        match libc::WIFEXITED(status) {
            true => Ok(Stood::Exited(libc::WEXITSTATUS(status))),
            false => Ok(Stood::Killed(libc::WTERMSIG(status))),
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: a process that was not waited for keeps its id, so it is ours.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            while !self.ended && self.wait().is_ok() {}
        }
    }
}

fn request(request: libc::c_uint, pid: pid_t, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: of the requests made here, only GETREGS writes through `data`, and SETREGS reads; there it is the address of
    // a `user_regs_struct`.
    match unsafe { libc::ptrace(request, pid, address as *mut c_void, data as *mut c_void) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
