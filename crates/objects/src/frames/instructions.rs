//! Call frame instructions (DWARF 5, section 6.4.2), run for the registers that a walk needs.

use crate::architecture::Architecture;
use crate::frames::cursor::Cursor;
use crate::frames::entries::Cie;
use crate::frames::section::FrameSection;
use crate::limits::MAX_REMEMBERED;

/// How to find the canonical frame address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cfa<'a> {
    Undefined,
    /// A register plus an offset in bytes.
    Register(u64, i64),
    Expression(&'a [u8]),
}

/// How to find the caller's value of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Saved<'a> {
    /// Nothing was said.
    Unmentioned,
    Undefined,
    Same,
    /// In memory at the CFA plus an offset in bytes.
    AtCfa(i64),
    /// In memory where the expression points.
    At(&'a [u8]),
    /// In another register.
    In(u64),
    /// Computed.
    Elsewhere,
}

/// What holds at one instruction of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct State<'a> {
    pub(crate) cfa: Cfa<'a>,
    /// Offset of the last CFA that was a register and an offset.
    pub(crate) cfa_offset: i64,
    pub(crate) fp: Saved<'a>,
    pub(crate) ra: Saved<'a>,
    /// x86_64: rbx.
    pub(crate) bx: Saved<'a>,
    /// The stack pointer, which is the CFA where nothing is said.
    pub(crate) sp: Saved<'a>,
}

impl State<'_> {
    const START: State<'static> = State {
        cfa: Cfa::Undefined,
        cfa_offset: 0,
        fp: Saved::Unmentioned,
        ra: Saved::Unmentioned,
        bx: Saved::Unmentioned,
        sp: Saved::Unmentioned,
    };
}

/// Runs the instructions of functions; keeps its memory from one to the next.
pub(crate) struct Machine<'a> {
    section: FrameSection<'a>,
    frame_pointer: u64,
    remembered: Vec<State<'a>>,
}

/// One run: where it is, and what holds there.
struct Run<'m, 'a> {
    machine: &'m mut Machine<'a>,
    cie: &'m Cie<'a>,
    /// Address of the function.
    begin: u64,
    /// Bytes from the beginning of the function.
    at: u64,
    state: State<'a>,
    /// What `DW_CFA_restore` goes back to; nothing within a CIE.
    initial: Option<State<'a>>,
}

/// What the instructions of a CIE establish.
pub(crate) fn initial_state<'a>(section: FrameSection<'a>, cie: &Cie<'a>, code: Cursor<'a>) -> Option<State<'a>> {
    let mut machine = Machine::new(section);
    let mut run = Run { machine: &mut machine, cie, begin: 0, at: 0, state: State::START, initial: None };
    run.execute(code, |_, _| {})?;
    Some(run.state)
}

impl<'a> Machine<'a> {
    pub(crate) fn new(section: FrameSection<'a>) -> Machine<'a> {
        Machine { section, frame_pointer: section.architecture.frame_pointer(), remembered: Vec::new() }
    }

    /// Calls `row` with each place in the function, in bytes from its beginning, from which on another state holds.
    ///
    /// Places rise strictly; they may lie beyond the end of the function. `None` if the instructions are bad, which is
    /// known only at their end.
    pub(crate) fn run(
        &mut self,
        cie: &Cie<'a>,
        begin: u64,
        code: Cursor<'a>,
        mut row: impl FnMut(u64, &State<'a>),
    ) -> Option<()> {
        let state = cie.initial?;
        self.remembered.clear();
        let mut run = Run { machine: self, cie, begin, at: 0, state, initial: Some(state) };
        run.execute(code, &mut row)?;
        row(run.at, &run.state);
        Some(())
    }
}

impl<'a> Run<'_, 'a> {
    fn execute(&mut self, mut code: Cursor<'a>, mut row: impl FnMut(u64, &State<'a>)) -> Option<()> {
        while !code.is_empty() {
            let operation = code.u8()?;
            let low = u64::from(operation & 0x3f);
            let next = match operation >> 6 {
                1 => self.advanced(low),
                2 => {
                    let factored = code.uleb()?;
                    self.save(low, Saved::AtCfa(self.bytes(factored.cast_signed())));
                    self.at
                }
                3 => {
                    self.restore(low)?;
                    self.at
                }
                _ => match operation {
                    0x01 => self.set_location(&mut code)?,
                    0x02 => self.advanced(u64::from(code.u8()?)),
                    0x03 => self.advanced(u64::from(code.u16()?)),
                    0x04 => self.advanced(u64::from(code.u32()?)),
                    0x07..=0x0b => {
                        self.simple(operation, &mut code)?;
                        self.at
                    }
                    _ => {
                        self.define(operation, &mut code)?;
                        self.at
                    }
                },
            };
            if next != self.at {
                row(self.at, &self.state);
                self.at = next;
            }
        }
        Some(())
    }

    /// The place `delta` units of code further; far too far stays at the end of all code.
    fn advanced(&self, delta: u64) -> u64 {
        self.at.saturating_add(delta.saturating_mul(self.cie.code_alignment))
    }

    fn set_location(&self, code: &mut Cursor<'a>) -> Option<u64> {
        let address = code.encoded_pointer(self.cie.encoding, self.machine.section.address, None)?;
        address.checked_sub(self.begin).filter(|&at| at >= self.at)
    }

    /// Bytes of a factored offset. What overflows fits no rule either, and stays out of range.
    fn bytes(&self, factored: i64) -> i64 {
        factored.saturating_mul(self.cie.data_alignment)
    }

    fn slot(&mut self, register: u64) -> Option<&mut Saved<'a>> {
        if register == self.machine.frame_pointer {
            Some(&mut self.state.fp)
        } else if register == self.cie.return_register {
            Some(&mut self.state.ra)
        } else if self.is_base_register(register) {
            Some(&mut self.state.bx)
        } else if register == self.machine.section.architecture.stack_pointer() {
            Some(&mut self.state.sp)
        } else {
            None
        }
    }

    fn save(&mut self, register: u64, saved: Saved<'a>) {
        if let Some(slot) = self.slot(register) {
            *slot = saved;
        }
    }

    /// The caller's value is the CFA itself, or that and an offset. For the stack pointer, the former is nothing new.
    fn save_value(&mut self, register: u64, is_cfa: bool) {
        let usual = is_cfa && register == self.machine.section.architecture.stack_pointer();
        self.save(register, if usual { Saved::Unmentioned } else { Saved::Elsewhere });
    }

    fn restore(&mut self, register: u64) -> Option<()> {
        let initial = self.initial?;
        if register == self.machine.frame_pointer {
            self.state.fp = initial.fp;
        } else if register == self.cie.return_register {
            self.state.ra = initial.ra;
        } else if self.is_base_register(register) {
            self.state.bx = initial.bx;
        } else if register == self.machine.section.architecture.stack_pointer() {
            self.state.sp = initial.sp;
        }
        Some(())
    }

    /// rbx of x86_64.
    fn is_base_register(&self, register: u64) -> bool {
        register == 3 && self.machine.section.architecture == Architecture::X86_64
    }

    /// Instructions without offsets: undefined, same value, register, remember, restore state.
    fn simple(&mut self, operation: u8, code: &mut Cursor<'a>) -> Option<()> {
        match operation {
            0x07 => self.save(code.uleb()?, Saved::Undefined),
            0x08 => self.save(code.uleb()?, Saved::Same),
            0x09 => {
                let (register, source) = (code.uleb()?, code.uleb()?);
                let saved = if register == source { Saved::Same } else { Saved::In(source) };
                self.save(register, saved);
            }
            0x0a if self.machine.remembered.len() < MAX_REMEMBERED => self.machine.remembered.push(self.state),
            0x0b => self.state = self.machine.remembered.pop()?,
            _ => return None,
        }
        Some(())
    }

    /// Instructions that define the CFA or say where a register is.
    fn define(&mut self, operation: u8, code: &mut Cursor<'a>) -> Option<()> {
        match operation {
            0x00 => {}
            0x05 => {
                let (register, factored) = (code.uleb()?, code.uleb()?);
                self.save(register, Saved::AtCfa(self.bytes(factored.cast_signed())));
            }
            0x06 => self.restore(code.uleb()?)?,
            0x0c => self.set_cfa(code.uleb()?, code.uleb()?.cast_signed()),
            0x0d => self.set_cfa(code.uleb()?, self.cfa_offset()?),
            0x0e => self.set_cfa(self.cfa_register()?, code.uleb()?.cast_signed()),
            0x0f => self.state.cfa = Cfa::Expression(code.block()?),
            0x10 => {
                let register = code.uleb()?;
                self.save(register, Saved::At(code.block()?));
            }
            0x11 => {
                let (register, factored) = (code.uleb()?, code.sleb()?);
                self.save(register, Saved::AtCfa(self.bytes(factored)));
            }
            0x12 => self.set_cfa(code.uleb()?, self.bytes(code.sleb()?)),
            0x13 => self.set_cfa(self.cfa_register()?, self.bytes(code.sleb()?)),
            0x14 => {
                let (register, factored) = (code.uleb()?, code.uleb()?);
                self.save_value(register, factored == 0);
            }
            0x15 => {
                let (register, factored) = (code.uleb()?, code.sleb()?);
                self.save_value(register, factored == 0);
            }
            0x16 => {
                let register = code.uleb()?;
                code.block()?;
                self.save(register, Saved::Elsewhere);
            }
            // aarch64: the return address is signed from here on, or no longer (with its place, in the second form);
            // whoever reads one strips the signature
            0x2c | 0x2d if self.machine.section.architecture == Architecture::Aarch64 => {}
            // GNU: size of the arguments, which only a landing pad needs
            0x2e => _ = code.uleb()?,
            _ => return None,
        }
        Some(())
    }

    fn set_cfa(&mut self, register: u64, offset: i64) {
        self.state.cfa = Cfa::Register(register, offset);
        self.state.cfa_offset = offset;
    }

    fn cfa_register(&self) -> Option<u64> {
        match self.state.cfa {
            Cfa::Register(register, _) => Some(register),
            Cfa::Undefined | Cfa::Expression(_) => None,
        }
    }

    /// The offset that another register gets. Behind an expression it is the one before it, as in libgcc's unwinder
    /// (`DW_CFA_def_cfa_register` in unwind-dw2.c): libgcrypt's SHA-512 for AVX2 counts on that.
    fn cfa_offset(&self) -> Option<i64> {
        match self.state.cfa {
            Cfa::Register(..) | Cfa::Expression(_) => Some(self.state.cfa_offset),
            Cfa::Undefined => None,
        }
    }
}
