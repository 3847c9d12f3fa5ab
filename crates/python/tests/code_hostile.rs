//! Files and code that nobody would write: no panic, and an end.

mod code_support;

use code_support::program::{AARCH64, DATA, Program, RUNTIME, X86_64};
use proptest::collection::vec;
use proptest::prelude::*;
use python::code::{Function, KeyOf, Location, Place, derive};
use python::file::PythonFile;

/// A program whose functions of interest all lie in the same code, at places that are given in bytes from its beginning. The
/// last 16 bytes are `PyThread_tss_get`.
fn program(machine: u16, fixed: bool, code: &[u8], begins: [u16; 4]) -> Vec<u8> {
    let mut functions: Vec<_> =
        Function::ALL.iter().zip(begins).map(|(function, begin)| (function.name(), begin.into(), 0)).collect();
    functions.push(("PyThread_tss_get", code.len() as u64 - 16, 16));
    functions.push(("_PyEval_EvalFrameDefault", 0, 0));
    functions.push(("Py_GetVersion", begins[0].into(), 0));
    let objects = vec![("_PyRuntime", DATA, RUNTIME)];
    Program { machine, fixed, code: code.to_vec(), functions, objects }.file()
}

fn look_at(data: &[u8]) {
    let Ok(file) = PythonFile::parse(data) else { return };
    let _ = file.identify();
    let _ = derive(&file).map_err(|refusal| refusal.to_string());
}

/// Programs of this kind are understood: if the code is some, they say what it does.
#[test]
fn a_program_of_this_kind_says_something() {
    // mov edi, DATA+0x100; jmp to the last 16 bytes, which are PyThread_tss_get
    let mut code = vec![0xbf];
    code.extend(((DATA + 0x100) as u32).to_le_bytes());
    code.extend([0xe9, 6, 0, 0, 0]);
    code.resize(16, 0x90);
    code.resize(32, 0xc3);
    let data = program(X86_64, true, &code, [0; 4]);
    let file = PythonFile::parse(&data).expect("a file");
    let derived = derive(&file).expect("a place");
    let at = Location::File { address: DATA + 0x104, in_runtime: Some(0x104) };
    assert_eq!(derived.place, Place::Key { at, of: KeyOf::Tss });
    assert_eq!(derived.findings.len(), 4);
    // the same number is no address in a file that is loaded anywhere
    let data = program(X86_64, false, &code, [0; 4]);
    assert!(derive(&PythonFile::parse(&data).expect("a file")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes(data in vec(any::<u8>(), 0..2000)) {
        look_at(&data);
        let header = [b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0".to_vec(), data].concat();
        look_at(&header);
    }

    #[test]
    fn code(
        machine in prop_oneof![Just(X86_64), Just(AARCH64)],
        fixed: bool,
        code in vec(any::<u8>(), 16..3000),
        begins: [u8; 4],
    ) {
        look_at(&program(machine, fixed, &code, begins.map(|begin| u16::from(begin / 16) * 4)));
    }

    /// What compilers use most, so that paths get long: moves, loads, branches, calls.
    #[test]
    fn code_of_likely_instructions(fixed: bool, picks in vec((0..12usize, any::<u32>()), 16..700), begins: [u8; 4]) {
        let code: Vec<u8> = picks.iter().flat_map(|&(pick, bits)| {
            let near = (bits >> 8 & 0x3f) << 5;
            let word: u32 = match pick {
                0 => 0x9000_0000 | bits & 0x60ff_ffff,        // adrp
                1 => 0x9100_0000 | bits & 0x007f_ffff,        // add
                2 => 0xf940_0000 | bits & 0x003f_ffff,        // ldr
                3 => 0xb500_0000 | near | bits & 0x1f,        // cbnz
                4 => 0x5400_0000 | near | bits & 0xf,         // b.cond
                5 => 0x9400_0000 | bits & 0x3f,               // bl
                6 => 0x17ff_ffc0 | bits & 0x3f,               // b, backwards
                7 => 0xa900_0000 | bits & 0x007f_ffff,        // stp
                8 => 0xd280_0000 | bits & 0x007f_ffff,        // movz
                9 => 0xd63f_0000 | bits & 0x3e0,              // blr
                10 => 0xd65f_03c0,                            // ret
                _ => 0xaa00_03e0 | bits & 0x001f_001f,        // mov
            };
            word.to_le_bytes()
        }).collect();
        look_at(&program(AARCH64, fixed, &code, begins.map(|begin| u16::from(begin) * 4)));
        let code: Vec<u8> = picks.iter().flat_map(|&(pick, bits)| {
            let [a, b, c, d] = bits.to_le_bytes();
            match pick {
                0 => vec![0x48, 0x8b, 0x05 | a & 0x38, b, c, 0, 0],  // mov r64, [rip+..]
                1 => vec![0x48, 0x8d, 0x80 | a & 0x3f, b, c, 0, 0],  // lea
                2 => vec![0x48, 0x03, 0x05 | a & 0x38, b, c, 0, 0],  // add r64, [rip+..]
                3 => vec![0x70 | a & 0xf, b],                        // jcc
                4 => vec![0xe8, a, b & 0xf, 0, 0],                   // call
                5 => vec![0xe9, a, 0xff, 0xff, 0xff],                // jmp, backwards
                6 => vec![0x50 | a & 0xf],                           // push, pop
                7 => vec![0x48, 0x89, 0xc0 | b & 0x3f],              // mov r64, r64
                8 => vec![0xb8 | a & 7, b, c, d, 0],                 // mov r32, imm32
                9 => vec![0x64, 0x48, 0x8b, 0x04, 0x25, a, 0xff, 0xff, 0xff],
                10 => vec![0xc3],
                _ => vec![0xff, 0xd0 | a & 7],                       // call r64
            }
        }).collect();
        look_at(&program(X86_64, fixed, &code, begins.map(|begin| u16::from(begin) * 3)));
    }

    #[test]
    fn headers_and_tables(
        fixed: bool,
        code in vec(any::<u8>(), 16..200),
        changes in vec((0..0x600usize, any::<u8>()), 1..40),
    ) {
        let mut data = program(X86_64, fixed, &code, [0; 4]);
        for (at, byte) in changes {
            data[at] = byte;
        }
        look_at(&data);
    }
}
