//! Each named refusal, provoked.

mod code_support;

use code_support::program::{CODE, DATA, Program, RUNTIME, X86_64};
use python::Version;
use python::code::{CodeRefusal, Function, FunctionRefusal, KeyOf, Location, Place, derive, evaluate};
use python::file::{FileError, PythonFile, VersionRefusal, VersionSource};

/// Bytes between two functions.
const STRIDE: u64 = 64;

/// Code of a function that passes a number on to another: `mov edi, number; jmp function`.
fn asks(at: u64, number: u64, function: u64) -> Vec<u8> {
    let mut code = vec![0xbf];
    code.extend((number as u32).to_le_bytes());
    code.push(0xe9);
    code.extend((function.wrapping_sub(at + 10) as u32).to_le_bytes());
    code
}

/// Code that reads a key and passes it on: `mov edi, [rip+..]; jmp function`.
fn reads(at: u64, key: u64, function: u64) -> Vec<u8> {
    let mut code = vec![0x8b, 0x3d];
    code.extend((key.wrapping_sub(CODE + at + 6) as u32).to_le_bytes());
    code.push(0xe9);
    code.extend((function.wrapping_sub(at + 11) as u32).to_le_bytes());
    code
}

const TSS_GET: u64 = 6 * STRIDE;
const GETSPECIFIC: u64 = 7 * STRIDE;

/// A program of the four functions, of `PyThread_tss_get` and of `pthread_getspecific`, each but the four a `ret`.
fn program(bodies: [Option<Vec<u8>>; 4]) -> Program {
    let mut code = vec![0xc3; 8 * STRIDE as usize];
    let mut functions = vec![("PyThread_tss_get", TSS_GET, 1), ("pthread_getspecific", GETSPECIFIC, 1)];
    for (index, (function, body)) in Function::ALL.into_iter().zip(bodies).enumerate() {
        let begin = index as u64 * STRIDE;
        if let Some(body) = body {
            code[begin as usize..][..body.len()].copy_from_slice(&body);
            functions.push((function.name(), begin, STRIDE));
        }
    }
    Program { machine: X86_64, fixed: true, code, functions, objects: vec![("_PyRuntime", DATA, RUNTIME)] }
}

fn tss(index: u64, number: u64) -> Option<Vec<u8>> {
    Some(asks(index * STRIDE, number, TSS_GET))
}

fn refusal_of(body: Option<Vec<u8>>) -> FunctionRefusal {
    let data = program([body, None, None, None]).file();
    let file = PythonFile::parse(&data).expect("a file");
    let refused = evaluate(&file, Function::GetThisThreadState).expect_err("a refusal");
    assert_eq!(refused.address.is_some(), refused.refusal != FunctionRefusal::Absent);
    assert_eq!(refused.body.is_empty(), refused.refusal == FunctionRefusal::Absent);
    assert!(refused.to_string().contains("PyGILState_GetThisThreadState: "));
    refused.refusal
}

#[test]
fn of_a_function() {
    assert_eq!(refusal_of(None), FunctionRefusal::Absent);
    assert_eq!(refusal_of(Some(vec![0xc3])), FunctionRefusal::NoLookup);
    let jump = asks(0, 0, TSS_GET)[5..].to_vec();
    // the distance is that of a jump five bytes further on
    let passes_on = [vec![0x90; 5], jump].concat();
    assert_eq!(refusal_of(Some(passes_on)), FunctionRefusal::UnknownKey { site: CODE + 5 });
    let place = DATA + RUNTIME;
    assert_eq!(refusal_of(tss(0, place)), FunctionRefusal::NoVariable { site: CODE + 5, place });
    assert_eq!(refusal_of(tss(0, CODE)), FunctionRefusal::NoVariable { site: CODE + 5, place: CODE });
    assert_eq!(refusal_of(tss(0, DATA + 2)), FunctionRefusal::NoVariable { site: CODE + 5, place: DATA + 2 });
    let two = [vec![0x74, 10], asks(2, DATA + 8, TSS_GET), asks(12, DATA + 16, TSS_GET)].concat();
    assert_eq!(refusal_of(Some(two)), FunctionRefusal::Ambiguous { first: CODE + 17, second: CODE + 7 });
    // push es, which 64-bit code does not have
    assert_eq!(refusal_of(Some(vec![0x90, 0x06])), FunctionRefusal::Undecodable { at: CODE + 1 });
    let nothing = vec![0x90; STRIDE as usize];
    let mut program = program([Some(nothing), Some(vec![0xc3]), None, None]);
    let data = program.file();
    let file = PythonFile::parse(&data).expect("a file");
    let refused = evaluate(&file, Function::GetThisThreadState).expect_err("a refusal");
    assert_eq!(refused.refusal, FunctionRefusal::RunsOff { at: CODE + STRIDE });
    program.code = vec![0x90; 20_000];
    program.functions = vec![(Function::GetThisThreadState.name(), 0, 20_000)];
    let data = program.file();
    let file = PythonFile::parse(&data).expect("a file");
    let refused = evaluate(&file, Function::GetThisThreadState).expect_err("a refusal");
    assert_eq!(refused.refusal, FunctionRefusal::TooLong);
    assert_eq!(refused.body.len(), 512);
}

#[test]
fn of_all_functions() {
    let derive = |bodies| {
        let data = program(bodies).file();
        derive(&PythonFile::parse(&data).expect("a file"))
    };
    let at = Location::File { address: DATA + 12, in_runtime: Some(12) };
    let place = Place::Key { at, of: KeyOf::Tss };

    let refusal = derive([None, None, None, Some(vec![0xc3])]).expect_err("nothing");
    assert!(matches!(&refusal, CodeRefusal::Silent { refused } if refused.len() == 4), "{refusal}");

    let refusal = derive([tss(0, DATA + 8), tss(1, DATA + 8), None, tss(3, DATA + 16)]).expect_err("two places");
    assert!(matches!(&refusal, CodeRefusal::Contradiction { findings } if findings.len() == 3), "{refusal}");

    // one is enough if the others have nothing to say
    let derived = derive([tss(0, DATA + 8), None, Some(vec![0xc3]), None]).expect("a place");
    assert_eq!((derived.place, derived.is_confirmed()), (place, false));
    let refusal = derive([tss(0, DATA + 8), None, Some(vec![0x06]), None]).expect_err("one place");
    assert!(matches!(&refusal, CodeRefusal::Unconfirmed { refused, .. } if refused.len() == 3), "{refusal}");

    // what is not understood does no harm if two agree
    let derived = derive([tss(0, DATA + 8), tss(1, DATA + 8), Some(vec![0x06]), None]).expect("a place");
    assert_eq!((derived.place, derived.is_confirmed(), derived.refused.len()), (place, true, 2));

    let key = |index: u64| Some(reads(index * STRIDE, DATA + 12, GETSPECIFIC));
    let refusal = derive([key(0), key(1), None, None]).expect_err("no kind");
    assert!(matches!(&refusal, CodeRefusal::KeyOfWhat { findings } if findings.len() == 2), "{refusal}");
    // the struct four bytes before is the same place, and tells what it is
    let derived = derive([key(0), tss(1, DATA + 8), None, None]).expect("a place");
    assert_eq!((derived.place, derived.is_confirmed()), (place, true));
}

#[test]
fn of_a_file() {
    let sound = program([None, None, None, None]).file();
    let with = |at: usize, bytes: &[u8]| {
        let mut data = sound.clone();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        PythonFile::parse(&data).expect_err("no file of interest")
    };
    assert_eq!(with(0, b"\x7fELG"), FileError::NotElf);
    assert_eq!(PythonFile::parse(&sound[..50]).expect_err("too short"), FileError::NotElf);
    assert_eq!(with(4, &[1]), FileError::Bits32);
    assert_eq!(with(5, &[2]), FileError::BigEndian);
    assert_eq!(with(18, &[243, 0]), FileError::Machine(243));
    assert_eq!(with(16, &[4, 0]), FileError::Kind(4));
    assert_eq!(with(54, &[32, 0]), FileError::ProgramHeaders);
    assert_eq!(with(32, &[0xff; 8]), FileError::ProgramHeaders);
}

/// `lea rdi, text; jmp` to a function, in front of the text.
fn tells(text: &str) -> Program {
    let mut program = program([None, None, None, None]);
    let at = 4 * STRIDE as usize;
    let mut code = vec![0x48, 0x8d, 0x3d, 5, 0, 0, 0, 0xe9];
    code.extend((TSS_GET as u32 - at as u32 - 12).to_le_bytes());
    code.extend(text.bytes().chain([0]));
    program.code[at..at + code.len()].copy_from_slice(&code);
    program.functions.push(("Py_GetVersion", at as u64, 12));
    program.functions.push(("_PyEval_EvalFrameDefault", 5 * STRIDE, 1));
    program
}

#[test]
fn of_a_version() {
    let identify = |program: &Program| PythonFile::parse(&program.file()).expect("a file").identify();
    let identity = identify(&tells("3.12.1+")).expect("an interpreter");
    assert_eq!(identity.version, Ok(Version::release(3, 12, 1)));
    assert_eq!(identity.evidence[0].source, VersionSource::Text);
    for text in ["3.12", "3.12.1 (main)", "%.80s"] {
        assert_eq!(identify(&tells(text)).expect("an interpreter").version, Err(VersionRefusal::Silent), "{text}");
    }
    // a constant that says 3.12.2 instead
    let mut program = tells("3.12.1");
    let at = 5 * STRIDE as usize + 8;
    program.code[at..at + 8].copy_from_slice(&0x030c_02f0_u64.to_le_bytes());
    program.objects.push(("Py_Version", CODE + at as u64, 8));
    let version = identify(&program).expect("an interpreter").version;
    assert!(matches!(version, Err(VersionRefusal::Contradiction(..))), "{version:?}");
    // without an eval loop it is none
    program.functions.retain(|(name, ..)| *name != "_PyEval_EvalFrameDefault");
    assert_eq!(identify(&program), None);
}
