//! The native stack of a thread that was held.

use abi::process::Mapping;
use abi::python::Entry;
use abi::record::{Registers, TURNS};
use abi::stop::Stop;
use abi::table::{Rule, cfa};
use objects::exits::{Code, Exit, exit, exit_after_call};
use processes::memory::read_memory;
use walk::{Target, Walk, turn, unroll};

use crate::Files;

#[cfg(target_arch = "aarch64")]
type Native = walk::Aarch64;
#[cfg(target_arch = "x86_64")]
type Native = walk::X86_64;

/// What was taken of a thread while it was held.
#[derive(Clone, Debug)]
pub struct ThreadStack {
    /// Its registers.
    pub registers: Registers,
    /// Address of the first byte of `stack`.
    pub stack_begin: u64,
    /// Its stack from there on.
    pub stack: Vec<u8>,
    /// Bits of return addresses that are not part of them (pointer authentication; 0 on x86_64).
    pub code_mask: u64,
}

/// Walks the stack of a thread of the process of `files`: words of [`abi::word`], innermost first, the last one says why
/// the stack ends. Code without unwind information is read from the process as it is now.
pub fn native_stack(files: &Files, held: &ThreadStack) -> Vec<u64> {
    let mut walk = Box::new(Walk::ZERO);
    walk.registers = held.registers;
    walk.begin(0, held.code_mask);
    let mut thread = Thread { files, held };
    let mut turns = TURNS;
    while turn::<Native, Thread>(&mut thread, &Entry::NONE, &mut walk) {
        turns -= 1;
        if turns == 0 {
            walk.end(Stop::TooDeep);
            break;
        }
    }
    let mut words = Vec::with_capacity(walk.stack.header.total as usize);
    unroll(&walk.stack.words, walk.stack.header.total, |word| words.push(word));
    words
}

struct Thread<'a> {
    files: &'a Files,
    held: &'a ThreadStack,
}

impl Target for Thread<'_> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.held.stack_begin)?).ok()?;
        let bytes = self.held.stack.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn mapping(&mut self, pc: u64) -> Option<Mapping> {
        self.files.mapping(pc).copied()
    }

    fn rule(&mut self, mapping: &Mapping, offset: u64) -> Rule {
        self.files.rule(mapping, offset)
    }

    fn exit(&mut self, _mapping: &Mapping, pc: u64, interrupted: bool) -> Option<Rule> {
        let mut code = Live { files: self.files };
        let found = if interrupted { exit(&mut code, pc) } else { exit_after_call(&mut code, pc) };
        Some(match found {
            // other registers are known where the thread was interrupted; elsewhere its frame pointer may lead on
            Exit::Rule(rule) if interrupted || rule.cfa != cfa::REGISTER => rule,
            Exit::Rule(_) | Exit::Unclear(_) => Rule::NONE,
        })
    }

    fn read_code(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (Live { files: self.files }.read(address, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
    }
}

/// Code of the process.
struct Live<'a> {
    files: &'a Files,
}

impl Code for Live<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        let Some(mapping) = self.files.mapping(address) else { return 0 };
        let length = into.len().min(usize::try_from(mapping.end - address).unwrap_or(usize::MAX));
        read_memory(self.files.pid(), address, &mut into[..length]).unwrap_or(0)
    }
}
