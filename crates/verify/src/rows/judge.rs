//! The other side: one step of framehop's unwinder.

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::{Object, ObjectSection};

use super::answer::{Answer, Caller};
use super::thread::{Mode, RBP, RSP, Thread};

/// framehop with one module.
pub(crate) struct Judge<'d> {
    unwinder: UnwinderX86_64<&'d [u8]>,
    cache: CacheX86_64,
}

impl<'d> Judge<'d> {
    /// Takes what framehop reads of a file: `.eh_frame`, its search table if it has one, and where sections lie.
    pub(crate) fn new(file: &object::File<'d>, end: u64) -> Judge<'d> {
        let range = |name| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().saturating_add(section.size()))
        };
        let data = |name| file.section_by_name(name)?.data().ok();
        let sections = ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            ..Default::default()
        };
        let mut unwinder = UnwinderX86_64::new();
        unwinder.add_module(Module::new(String::new(), 0..end, 0, sections));
        Judge { unwinder, cache: CacheX86_64::new() }
    }

    /// The caller of a made-up thread.
    pub(crate) fn step(&mut self, thread: &Thread) -> Answer {
        let address = match thread.mode {
            Mode::Interrupted => FrameAddress::from_instruction_pointer(thread.pc),
            Mode::Called => match FrameAddress::from_return_address(thread.pc) {
                Some(address) => address,
                None => return Answer::Unknown,
            },
        };
        let mut registers = UnwindRegsX86_64::new(thread.pc, thread.register(RSP), thread.register(RBP));
        let mut read = |address| Ok(thread.memory(address));
        match self.unwinder.unwind_frame(address, &mut registers, &mut self.cache, &mut read) {
            Ok(Some(pc)) => Answer::Caller(Caller { pc, sp: registers.sp(), fp: Some(registers.bp()) }),
            Ok(None) => Answer::Root,
            Err(error) => Answer::Failed(error),
        }
    }
}
