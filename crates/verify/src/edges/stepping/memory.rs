//! Memory of a stopped process, and how the kernel's signal frames lie in it.

use std::ops::Range;

use processes::memory::read_memory;

const PAGE: usize = 4096;

/// Pages that were read since the process last ran.
#[derive(Debug, Default)]
pub struct Pages {
    pages: Vec<(u64, Box<[u8; PAGE]>)>,
    used: usize,
}

impl Pages {
    /// The process has run: nothing that was read holds any longer.
    pub fn forget(&mut self) {
        self.used = 0;
    }

    /// The 8 bytes at `address` in the memory of `pid`.
    pub fn u64(&mut self, pid: u32, address: u64) -> Option<u64> {
        let into = (address % PAGE as u64) as usize;
        if into > PAGE - 8 {
            let mut bytes = [0; 8];
            return (read_memory(pid, address, &mut bytes).ok()? == 8).then(|| u64::from_le_bytes(bytes));
        }
        let page = self.page(pid, address - into as u64)?;
        page[into..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn page(&mut self, pid: u32, begin: u64) -> Option<&[u8; PAGE]> {
        if let Some(known) = self.pages[..self.used].iter().position(|(known, _)| *known == begin) {
            return Some(&*self.pages[known].1);
        }
        if self.used == self.pages.len() {
            self.pages.push((0, Box::new([0; PAGE])));
        }
        let (place, bytes) = &mut self.pages[self.used];
        if read_memory(pid, begin, &mut bytes[..]).ok()? != PAGE {
            return None;
        }
        *place = begin;
        self.used += 1;
        Some(bytes)
    }
}

/// What the kernel wrote when it delivered a signal, by the C library's description of `ucontext_t`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignalFrame {
    /// Address of the `ucontext_t`.
    pub context: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// The interrupted pc.
    pub pc: u64,
    /// The interrupted stack pointer.
    pub sp: u64,
    /// The alternate stack, if the handler was moved to it.
    pub switched: Option<Range<u64>>,
}

impl SignalFrame {
    /// The frame of a handler that is about to run its first instruction with the stack pointer at `sp`.
    pub fn at(pages: &mut Pages, pid: u32, sp: u64) -> Option<SignalFrame> {
        use std::mem::offset_of;
        const REGISTERS: usize = offset_of!(libc::ucontext_t, uc_mcontext) + offset_of!(libc::mcontext_t, gregs);
        const STACK: usize = offset_of!(libc::ucontext_t, uc_stack);
        let context = sp.checked_add(8)?;
        let mut word = |offset: usize| pages.u64(pid, context.wrapping_add(offset as u64));
        let restorer = word(0usize.wrapping_sub(8))?;
        let pc = word(REGISTERS + libc::REG_RIP as usize * 8)?;
        let interrupted = word(REGISTERS + libc::REG_RSP as usize * 8)?;
        let begin = word(STACK + offset_of!(libc::stack_t, ss_sp))?;
        let size = word(STACK + offset_of!(libc::stack_t, ss_size))?;
        let stack = begin..begin.saturating_add(size);
        let switched = stack.contains(&sp) && !stack.contains(&interrupted);
        Some(SignalFrame { context, restorer, pc, sp: interrupted, switched: switched.then_some(stack) })
    }
}
