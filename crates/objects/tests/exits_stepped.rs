//! What the code says of how it is left, compared with the calls that a program makes, instruction by instruction. No
//! unwind information takes part: the program has none, and the truth is where calls put their return addresses.
#![cfg(target_arch = "x86_64")]

mod common;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use abi::table::{Rule, bx, cfa, fp};
use common::compile;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use objects::exits::{Code, Exit, Unclear, exit, exit_after_call};

/// Enough for the start of a static program and all functions of exits.c.
const MAX_STEPS: usize = 60_000;

/// A stopped process's memory.
struct Memory(File);

impl Code for Memory {
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        self.0.read_at(into, address).unwrap_or(0)
    }
}

impl Memory {
    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, address).unwrap();
        u64::from_le_bytes(bytes)
    }
}

/// A call that was made: where its return address lies, and the caller's registers.
struct Call {
    slot: u64,
    rbp: u64,
    rbx: u64,
}

#[derive(Default, Debug)]
struct Counts {
    unclear: HashMap<Unclear, usize>,
    right: usize,
    wrong: Vec<String>,
}

struct Stepper {
    pid: i32,
    memory: Memory,
    calls: Vec<Call>,
    /// Whether the instruction is a call, and its rule.
    places: HashMap<u64, (bool, Exit)>,
    behind_calls: HashMap<u64, Exit>,
}

/// A new process, stopped before its first instruction.
fn start(program: &Path) -> Stepper {
    let mut command = Command::new(program);
    // SAFETY: the closure makes one system call, which needs no lock or memory that a fork leaves behind.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let pid = command.spawn().unwrap().id() as i32;
    assert!(wait(pid), "it stops at the exec");
    let memory = Memory(File::open(format!("/proc/{pid}/mem")).unwrap());
    Stepper { pid, memory, calls: Vec::new(), places: HashMap::new(), behind_calls: HashMap::new() }
}

/// Whether the process stopped; false if it ended.
fn wait(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: `status` may be written.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    libc::WIFSTOPPED(status)
}

impl Stepper {
    fn registers(&self) -> libc::user_regs_struct {
        // SAFETY: all bytes of the structure may be zero.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: `registers` has the size that the request writes.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0, &mut registers) }, 0);
        registers
    }

    fn step(&self) -> bool {
        // SAFETY: the request touches no memory of this process.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0) }, 0);
        wait(self.pid)
    }

    fn run(&mut self, counts: &mut Counts) {
        for _ in 0..MAX_STEPS {
            let before = self.registers();
            let is_call = self.visit(&before, counts);
            if !self.step() {
                return;
            }
            let after = self.registers();
            // also what longjmp leaves
            self.calls.retain(|call| call.slot >= after.rsp);
            if is_call {
                self.visit_caller(&before, after.rsp, counts);
                self.calls.push(Call { slot: after.rsp, rbp: before.rbp, rbx: before.rbx });
            }
        }
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        while wait(self.pid) {}
    }

    /// Checks the rule of the instruction that comes next, and says whether that is a call.
    fn visit(&mut self, registers: &libc::user_regs_struct, counts: &mut Counts) -> bool {
        let pc = registers.rip;
        let new = !self.places.contains_key(&pc);
        let memory = &mut self.memory;
        let (is_call, exit) = *self.places.entry(pc).or_insert_with(|| (is_call(memory, pc), exit(memory, pc)));
        self.check(registers, exit, new, counts);
        is_call
    }

    /// Checks the rule of the caller's return address, where all but caller-saved registers are known.
    fn visit_caller(&mut self, registers: &libc::user_regs_struct, slot: u64, counts: &mut Counts) {
        let pc = self.memory.word(slot);
        let new = !self.behind_calls.contains_key(&pc);
        let memory = &mut self.memory;
        let exit = *self.behind_calls.entry(pc).or_insert_with(|| exit_after_call(memory, pc));
        let caller = libc::user_regs_struct { rip: pc, rsp: slot + 8, ..*registers };
        self.check(&caller, exit, new, counts);
    }

    fn check(&self, registers: &libc::user_regs_struct, exit: Exit, new: bool, counts: &mut Counts) {
        let Some(call) = self.calls.last() else { return };
        match exit {
            Exit::Rule(rule) => match self.fault(&rule, registers, call) {
                Some(fault) if counts.wrong.len() < 20 => {
                    counts.wrong.push(format!("{fault} at {:#x}: {rule:?}", registers.rip));
                }
                _ => counts.right += usize::from(new),
            },
            Exit::Unclear(why) => *counts.unclear.entry(why).or_default() += usize::from(new),
        }
    }

    /// What of a rule is not so.
    fn fault(&self, rule: &Rule, registers: &libc::user_regs_struct, call: &Call) -> Option<&'static str> {
        let at = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
        let cfa = match rule.cfa {
            cfa::SP => at(registers.rsp, rule.cfa_offset),
            cfa::FP => at(registers.rbp, rule.cfa_offset),
            cfa::DEREF_SP => at(self.memory.word(at(registers.rsp, rule.cfa_offset)), rule.extra),
            cfa::DEREF_FP => at(self.memory.word(at(registers.rbp, rule.cfa_offset)), rule.extra),
            cfa::REGISTER if rule.register == 10 => at(registers.r10, rule.cfa_offset),
            _ => return Some("unexpected kind"),
        };
        if cfa.wrapping_sub(8) != call.slot {
            return Some("CFA");
        }
        let rbp = match rule.fp {
            fp::SAME => registers.rbp,
            fp::AT_CFA => self.memory.word(at(cfa, rule.fp_offset)),
            fp::AT_FP => self.memory.word(at(registers.rbp, rule.fp_offset)),
            fp::AT_SP => self.memory.word(at(registers.rsp, rule.fp_offset)),
            _ => call.rbp,
        };
        let rbx = if rule.bx_offset == bx::LOST { call.rbx } else { self.memory.word(at(cfa, rule.bx_offset)) };
        if rbp != call.rbp {
            return Some("rbp");
        }
        (rbx != call.rbx).then_some("rbx")
    }
}

fn is_call(memory: &mut Memory, pc: u64) -> bool {
    let mut bytes = [0; 15];
    let length = memory.read(pc, &mut bytes);
    Decoder::new(64, &bytes[..length], DecoderOptions::NONE).decode().mnemonic() == Mnemonic::Call
}

#[test]
fn every_place_that_a_program_runs_through() {
    let directory = tempfile::tempdir().unwrap();
    let bare = ["-static", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    for level in [&["-O2"][..], &["-O0"], &["-Os"], &["-O3", "-fno-omit-frame-pointer"]] {
        let program = compile(directory.path(), "exits.c", &[&bare, level].concat());
        let mut counts = Counts::default();
        start(&program).run(&mut counts);
        println!("{level:?}: {} right, {:?}", counts.right, counts.unclear);
        assert_eq!(counts.wrong, Vec::<String>::new(), "{level:?}");
        assert!(counts.right > 2000, "{level:?}: {counts:?}");
        // `__libc_start_main` is one of the longest functions, and does not return
        let unclear: usize = counts.unclear.values().sum();
        assert!(unclear * 5 < counts.right, "{level:?}: {counts:?}");
    }
}
