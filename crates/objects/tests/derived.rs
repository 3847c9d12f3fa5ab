//! Rows derived from code, compared with the unwind information that compilers and people wrote for it: files whose
//! `.eh_frame` was hidden, so that all of their code is undescribed.
#![cfg(target_arch = "x86_64")]

mod common;

use std::ops::Range;
use std::path::Path;

use abi::table::{Rule, bx, cfa, fp, ra};
use common::{compile, library};
use gimli::{BaseAddresses, CfaRule, CieOrFde, EhFrame, RegisterRule, UnwindContext, UnwindSection, UnwindTableRow};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
use object::{Object, ObjectSection, ObjectSymbol};
use objects::{Image, UnwindTable};

const RBX: gimli::Register = gimli::Register(3);
const RBP: gimli::Register = gimli::Register(6);
const RSP: gimli::Register = gimli::Register(7);

/// A file without unwind information, but with everything else.
fn hidden(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let number = |at: usize, size: usize| data[at..at + size].iter().rev().fold(0, |n, b| n << 8 | usize::from(*b));
    let (programs, count) = (number(32, 8), number(56, 2));
    for header in (0..count).map(|index| programs + index * 56) {
        if number(header, 4) == 0x6474_e550 {
            bytes[header..header + 4].fill(0);
        }
    }
    let file = object::File::parse(data).unwrap();
    let (sections, count) = (number(40, 8), number(60, 2));
    for header in (0..count).map(|index| sections + index * 64) {
        let address = number(header + 16, 8) as u64;
        let is = |name| file.section_by_name(name).is_some_and(|section| section.address() == address);
        if address != 0 && (is(".eh_frame") || is(".eh_frame_hdr")) {
            // SHT_NOBITS: it has no bytes
            bytes[header + 4] = 8;
        }
    }
    bytes
}

#[derive(Default, Debug)]
struct Counts {
    functions: usize,
    /// With a row at each instruction, and at some.
    whole: usize,
    partly: usize,
    places: usize,
    right: usize,
    checked: usize,
    by_another_register: usize,
    wrong: Vec<(u64, String)>,
    wrong_registers: Vec<(u64, String)>,
    /// Functions that push registers at their beginning without a row that says so.
    silent: Vec<Range<u64>>,
}

impl Counts {
    fn count(&mut self, pc: u64, rule: &Rule, row: &UnwindTableRow<usize>) -> bool {
        self.places += 1;
        self.checked += usize::from(rule.ra == ra::CHECKED);
        let ours = match rule.cfa {
            cfa::SP => RSP,
            cfa::FP => RBP,
            cfa::NONE => return false,
            cfa::END => {
                self.wrong.push((pc, differs(pc, rule, row)));
                return true;
            }
            _ => gimli::Register(u16::from(u8::MAX)),
        };
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return true };
        if ours != register {
            self.by_another_register += 1;
        } else if i64::from(rule.cfa_offset) != offset {
            self.wrong.push((pc, differs(pc, rule, row)));
        } else {
            self.right += 1;
            if contradicts(rule, row) {
                self.wrong_registers.push((pc, differs(pc, rule, row)));
            }
        }
        true
    }

    /// Most instructions have a row.
    fn assert_many(&self) {
        assert!(self.right * 10 >= self.places * 6, "{} of {}", self.right, self.places);
    }
}

fn differs(pc: u64, rule: &Rule, row: &UnwindTableRow<usize>) -> String {
    let [theirs_fp, theirs_bx] = [RBP, RBX].map(|register| row.register(register));
    let ours = objects::describe(rule, objects::Architecture::X86_64);
    format!("{pc:x}: {ours}; the table: {:?}, rbp {theirs_fp:?}, rbx {theirs_bx:?}", row.cfa())
}

/// Whether a rule says of a register something else than a row. A row may call saved what is restored, or not written yet.
fn contradicts(rule: &Rule, row: &UnwindTableRow<usize>) -> bool {
    let other = |register, ours: i32| match row.register(register) {
        Some(RegisterRule::Offset(offset)) => offset != i64::from(ours),
        _ => true,
    };
    let saved_rbx = rule.bx_offset != bx::LOST && rule.bx_offset != bx::SAME;
    rule.fp == fp::AT_CFA && other(RBP, rule.fp_offset) || saved_rbx && other(RBX, rule.bx_offset)
}

fn compare(path: &Path) -> Counts {
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(&data[..]).unwrap();
    let image = Image::from_bytes(hidden(&data)).unwrap();
    let table = UnwindTable::build(&image).unwrap();
    assert_eq!(table.stats.fdes, 0);
    let section = file.section_by_name(".eh_frame").unwrap();
    let eh_frame = EhFrame::new(section.data().unwrap(), gimli::LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let mut context = Box::new(UnwindContext::new());
    let mut entries = eh_frame.entries(&bases);
    let mut counts = Counts::default();
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        let Some(place) = image.vaddr_to_file_offset(fde.initial_address()) else { continue };
        let bytes = &data[place as usize..place as usize + fde.len() as usize];
        let mut rows = fde.rows(&eh_frame, &bases, &mut context).unwrap();
        let mut described = Vec::new();
        while let Some(row) = rows.next_row().unwrap() {
            described.push(row.clone());
        }
        if described.len() == 1 && pushes(bytes) {
            counts.silent.push(fde.initial_address()..fde.initial_address() + fde.len());
        }
        let (mut all, mut some) = (true, false);
        for pc in instructions(bytes, fde.initial_address()) {
            let Some(row) = described.iter().find(|row| row.contains(pc)) else { continue };
            let rule = table.lookup(place + (pc - fde.initial_address()));
            let told = counts.count(pc, &rule, row);
            all &= told;
            some |= told;
        }
        counts.functions += 1;
        counts.whole += usize::from(all);
        counts.partly += usize::from(some && !all);
    }
    let Counts {
        functions,
        whole,
        partly,
        places,
        right,
        checked,
        by_another_register,
        wrong,
        wrong_registers,
        silent: _,
    } = &counts;
    println!(
        "{path:?}: {functions} functions, {whole} whole, {partly} partly; {places} instructions, {right} right, {checked} \
         only if a call leads there, {by_another_register} by another register, {} wrong, {} with wrong registers",
        wrong.len(),
        wrong_registers.len()
    );
    counts
}

/// Whether code pushes rbx and rbp near its beginning.
fn pushes(code: &[u8]) -> bool {
    code[..code.len().min(48)].windows(2).any(|bytes| bytes == [0x53, 0x55])
}

/// Where instructions begin. Not those that fill up behind a jump.
fn instructions(bytes: &[u8], begin: u64) -> Vec<u64> {
    let mut starts = Vec::new();
    let mut unreachable = false;
    for instruction in &mut Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE) {
        let nop = instruction.op0_register() == instruction.op1_register() && instruction.mnemonic() == Mnemonic::Xchg;
        if unreachable && (nop || matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)) {
            continue;
        }
        starts.push(instruction.ip());
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

/// What is wrong with `wrong`, but for places that `explained` explains.
fn unexplained(wrong: &[(u64, String)], explained: impl Fn(u64) -> bool) -> Vec<&str> {
    wrong.iter().filter(|(pc, _)| !explained(*pc)).map(|(_, what)| what.as_str()).collect()
}

/// `__mpn_mul_1` and its like push registers without saying so: there the table is wrong. And the entry point is known to have no
/// caller; libc's, which prints its version, is a function like others.
#[test]
fn libc() {
    let path = library("libc.so.6");
    let counts = compare(&path);
    let data = std::fs::read(&path).unwrap();
    let file = object::File::parse(&data[..]).unwrap();
    let entry = file.entry();
    let silent: Vec<_> = counts.silent.iter().map(|function| function.start..function.end).collect();
    let explained = |pc: u64| {
        (entry..entry + objects::limits::ENTRY_CODE).contains(&pc)
            || silent.iter().any(|function| function.contains(&pc))
    };
    assert!(silent.len() <= 12, "{}", silent.len());
    assert_eq!(unexplained(&counts.wrong, explained), [""; 0]);
    assert_eq!(unexplained(&counts.wrong_registers, explained), [""; 0]);
    counts.assert_many();
}

#[test]
fn libstdcxx() {
    let counts = compare(&library("libstdc++.so.6"));
    assert_eq!(unexplained(&counts.wrong, |_| false), [""; 0]);
    assert_eq!(unexplained(&counts.wrong_registers, |_| false), [""; 0]);
    counts.assert_many();
}

/// What is expected at each label of derived.s.
#[test]
fn made_functions() {
    let directory = tempfile::tempdir().unwrap();
    let path = compile(directory.path(), "derived.s", &["-nostdlib", "-static"]);
    let data = std::fs::read(path).unwrap();
    let image = Image::from_bytes(data.clone()).unwrap();
    let table = UnwindTable::build(&image).unwrap();
    let file = object::File::parse(&data[..]).unwrap();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for symbol in file.symbols() {
        let name = symbol.name().unwrap();
        let Some((expected, number)) = name.split_once('_') else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        let rule = table.lookup(image.vaddr_to_file_offset(symbol.address()).unwrap());
        let got = match rule.cfa {
            cfa::NONE => "none".to_owned(),
            cfa::END => "end".to_owned(),
            cfa::SP => format!("sp{}", rule.cfa_offset),
            cfa::FP => format!("fp{}", rule.cfa_offset),
            other => format!("{other}"),
        };
        seen += 1;
        if got != expected {
            wrong.push(format!("{name}: {got}"));
        }
    }
    assert!(seen > 80, "{seen}");
    assert_eq!(wrong, [""; 0]);
}
