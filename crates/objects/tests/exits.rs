//! What the code itself says of how it is left, compared with the unwind information that compilers wrote for it.
#![cfg(target_arch = "x86_64")]

mod common;

use std::path::{Path, PathBuf};

use abi::table::{Rule, bx, cfa, fp};
use common::{compile, library};
use gimli::{BaseAddresses, CfaRule, CieOrFde, EhFrame, RegisterRule, UnwindContext, UnwindSection, UnwindTableRow};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};
use objects::exits::{Code, Exit, exit, exit_after_call};

const RBX: gimli::Register = gimli::Register(3);
const RBP: gimli::Register = gimli::Register(6);
const RSP: gimli::Register = gimli::Register(7);

/// The executable segments of a file.
struct FileCode<'a>(Vec<(u64, &'a [u8])>);

impl<'a> FileCode<'a> {
    fn new(file: &object::File<'a>) -> FileCode<'a> {
        let executable = |flags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & 1 != 0);
        let segments = file.segments().filter(|segment| executable(segment.flags()));
        FileCode(segments.map(|segment| (segment.address(), segment.data().unwrap())).collect())
    }

    fn from(&self, address: u64) -> &'a [u8] {
        let bytes = self.0.iter().find_map(|(begin, bytes)| bytes.get(address.checked_sub(*begin)? as usize..));
        bytes.unwrap_or(&[])
    }
}

impl Code for FileCode<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        let bytes = self.from(address);
        let length = bytes.len().min(into.len());
        into[..length].copy_from_slice(&bytes[..length]);
        length
    }
}

#[derive(Default, Debug)]
struct Counts {
    places: usize,
    /// With a CFA that is the table's, or another.
    right: usize,
    wrong: Vec<u64>,
    /// With a CFA from another register than the table's.
    by_another_register: usize,
    /// A register that is said to be saved elsewhere than the table says.
    wrong_registers: Vec<u64>,
}

impl Counts {
    fn count(&mut self, pc: u64, exit: Exit, row: &UnwindTableRow<usize>) {
        self.places += 1;
        let Exit::Rule(rule) = exit else { return };
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return };
        let ours = match rule.cfa {
            cfa::SP => RSP,
            cfa::FP => RBP,
            _ => gimli::Register(u16::from(u8::MAX)),
        };
        if ours != register {
            self.by_another_register += 1;
        } else if i64::from(rule.cfa_offset) != offset {
            self.wrong.push(pc);
        } else {
            self.right += 1;
            if contradicts(&rule, row) {
                self.wrong_registers.push(pc);
            }
        }
    }

    fn assert_right(&self, what: &str, answered: usize) {
        println!(
            "{what}: {} places, {} right, {} wrong, {} by another register, {} with wrong registers",
            self.places,
            self.right,
            self.wrong.len(),
            self.by_another_register,
            self.wrong_registers.len()
        );
        assert!(self.wrong.len() * 1000 <= self.right, "{what}: at {:x?}", self.wrong);
        assert!(self.wrong_registers.len() * 1000 <= self.right, "{what}: at {:x?}", self.wrong_registers);
        let all = self.right + self.by_another_register;
        assert!(all * 100 >= self.places * answered, "{what}: {} of {}", all, self.places);
    }
}

/// Whether a rule says that a register lies in another place than the row says. A row may call saved what is already
/// restored, so "unchanged" contradicts only where the row's code is the function's main part; it is not compared.
fn contradicts(rule: &Rule, row: &UnwindTableRow<usize>) -> bool {
    let other = |register, ours: i32| match row.register(register) {
        Some(RegisterRule::Offset(offset)) => offset != i64::from(ours),
        _ => false,
    };
    let saved_rbx = rule.bx_offset != bx::LOST && rule.bx_offset != bx::SAME;
    rule.fp == fp::AT_CFA && other(RBP, rule.fp_offset) || saved_rbx && other(RBX, rule.bx_offset)
}

/// Compares each `every`th instruction of all functions that `of` chooses by their address.
fn compare(path: &Path, every: usize, of: impl Fn(u64) -> bool) -> [Counts; 2] {
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(&data[..]).unwrap();
    let mut code = FileCode::new(&file);
    let section = file.section_by_name(".eh_frame").unwrap();
    let eh_frame = EhFrame::new(section.data().unwrap(), gimli::LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let mut context = Box::new(UnwindContext::new());
    let mut entries = eh_frame.entries(&bases);
    let mut counts = [Counts::default(), Counts::default()];
    let mut number = 0;
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        if !of(fde.initial_address()) {
            continue;
        }
        let starts = instructions(code.from(fde.initial_address()), fde.initial_address(), fde.len());
        let mut rows = fde.rows(&eh_frame, &bases, &mut context).unwrap();
        let mut table = Vec::new();
        while let Some(row) = rows.next_row().unwrap() {
            table.push(row.clone());
        }
        for (pc, is_behind_call) in starts {
            let Some(row) = table.iter().find(|row| row.contains(pc)) else { continue };
            // stubs and realigned stacks: compared in gimli.rs
            if matches!(row.cfa(), CfaRule::Expression(_)) {
                continue;
            }
            number += 1;
            if number % every == 0 {
                counts[0].count(pc, exit(&mut code, pc), row);
            }
            if is_behind_call && number % every < every.div_ceil(4) {
                // what holds at the call
                let row = table.iter().find(|row| row.contains(pc - 1)).unwrap_or(row);
                counts[1].count(pc, exit_after_call(&mut code, pc), row);
            }
        }
    }
    counts
}

/// Where instructions begin, and whether that is behind a call. Not those that fill up behind a jump.
fn instructions(bytes: &[u8], begin: u64, length: u64) -> Vec<(u64, bool)> {
    let bytes = &bytes[..bytes.len().min(length as usize)];
    let mut starts = Vec::new();
    let (mut unreachable, mut call) = (false, false);
    for instruction in &mut Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE) {
        let nop = instruction.op0_register() == instruction.op1_register() && instruction.mnemonic() == Mnemonic::Xchg;
        let fills = nop || matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
        if unreachable && fills {
            continue;
        }
        starts.push((instruction.ip(), call));
        call = instruction.mnemonic() == Mnemonic::Call;
        unreachable = matches!(
            instruction.flow_control(),
            FlowControl::Return
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Exception
        ) || instruction.mnemonic() == Mnemonic::Hlt;
    }
    starts
}

fn programs(directory: &Path) -> Vec<PathBuf> {
    let omit = ["-O2", "-fomit-frame-pointer"];
    let keep = ["-O2", "-fno-omit-frame-pointer"];
    let all: [&[&str]; 4] = [&omit, &keep, &["-O0"], &["-Os", "-fcf-protection=full"]];
    all.iter().map(|flags| compile(directory, "exits.c", flags)).collect()
}

#[test]
fn compiled_c() {
    let directory = tempfile::tempdir().unwrap();
    for path in programs(directory.path()) {
        let [interrupted, called] = compare(&path, 1, |_| true);
        // for calls of the same file gcc need not align the stack, and much here ends in such calls
        interrupted.assert_right(&format!("{path:?}"), 60);
        assert_eq!(interrupted.wrong, []);
        assert_eq!(called.wrong, []);
    }
}

#[test]
fn libc() {
    let path = library("libc.so.6");
    let data = std::fs::read(&path).unwrap();
    let file = object::File::parse(&data[..]).unwrap();
    // `__mpn_mul_1` and its like push registers without saying so: there the table is wrong
    let code = FileCode::new(&file);
    let silent = |function| {
        let pushes: &[u8] = &[0x53, 0x55];
        let near = code.from(function);
        near[..near.len().min(48)].windows(2).any(|bytes| bytes == pushes)
    };
    let [interrupted, called] = compare(&path, 41, |function| !silent(function));
    interrupted.assert_right("libc", 93);
    called.assert_right("libc behind calls", 90);
}

/// The unlikely parts of C++ functions lie one behind the other, each ending in a call that does not come back
/// (`_Unwind_Resume`). Code alone does not show that, and it is not asked where there is unwind information.
#[test]
fn libstdcxx() {
    let [interrupted, _] = compare(&library("libstdc++.so.6"), 41, |_| true);
    println!("{} right, {} wrong", interrupted.right, interrupted.wrong.len());
    assert!(interrupted.right > 1000);
    assert!(interrupted.wrong.len() * 100 <= interrupted.right, "{:x?}", interrupted.wrong);
}

#[test]
fn libsqlite3() {
    let found = ["/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", "/usr/lib64/libsqlite3.so.0"].map(PathBuf::from);
    let Some(path) = found.iter().find(|path| path.exists()) else {
        println!("SKIPPED: no libsqlite3");
        return;
    };
    let [interrupted, called] = compare(path, 41, |_| true);
    interrupted.assert_right("libsqlite3", 93);
    called.assert_right("libsqlite3 behind calls", 90);
}
