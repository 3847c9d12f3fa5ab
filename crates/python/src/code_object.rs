//! Code objects: what a frame's function is called, where it stands, and which line an instruction of it belongs to.
//!
//! # The class of a method, before 3.11
//! Up to 3.10 a code object holds its plain name only: `run`, not `Server.run`. The class is left out, for it cannot be proven:
//! - The receiver is not there any more. Code objects are named when a recording is read, the frame's locals have changed or gone
//!   by then, and a method may have given another value to `self`, or its argument may live in a cell.
//! - The type of `self` is the class of the object, not the one that has the method. Searching its bases for a function with this
//!   code finds where the function is kept now: functions are assigned to classes after the fact, wrapped, shared between
//!   classes, and their `__qualname__` is whatever `functools.wraps` or anybody else wrote last.
//! - No pointer leads from a code object to its function, or to its enclosing code object.

use crate::lines::lasti::{Lasti, Position};
use crate::lines::{self, CODE_UNIT, Line, LineFormat};
use crate::strings::{Bytes, GarbledString, StringLayout, Text};
use crate::{Memory, Unreadable};

/// Bytes of a line table that are read. What lies behind has no line.
pub const MAX_LINE_TABLE: u64 = 1 << 20;
/// No function has more parameters, and no code object more bytes of code: larger numbers show that it is none.
const MAX_ARGUMENTS: u32 = 1 << 24;
const MAX_CODE: u64 = 1 << 31;
/// Alignment of every object.
const ALIGNMENT: u64 = 8;

/// Where the fields of code objects lie, in bytes from the object's address, and what they mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeLayout {
    /// Address of `PyCode_Type`, if it is known.
    pub code_type: Option<u64>,
    /// `ob_type`.
    pub ob_type: u64,
    /// `co_argcount`.
    pub co_argcount: u64,
    /// `co_posonlyargcount`, from 3.8 on.
    pub co_posonlyargcount: Option<u64>,
    /// `co_kwonlyargcount`.
    pub co_kwonlyargcount: u64,
    /// `co_flags`.
    pub co_flags: u64,
    /// `co_firstlineno`.
    pub co_firstlineno: u64,
    /// `co_filename`.
    pub co_filename: u64,
    /// `co_name`.
    pub co_name: u64,
    /// `co_qualname`, from 3.11 on.
    pub co_qualname: Option<u64>,
    /// `co_lnotab`, or `co_linetable`.
    pub co_linetable: u64,
    /// Where the bytecode is.
    pub bytecode: Bytecode,
    /// How the line table is written.
    pub line_format: LineFormat,
    /// What a frame keeps of its instruction.
    pub lasti: Lasti,
}

/// Where a code object has its bytecode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bytecode {
    /// Up to 3.10: in a `bytes` object.
    Object {
        /// `co_code`.
        co_code: u64,
    },
    /// From 3.11 on: behind its other fields.
    Inline {
        /// `ob_size`, in code units.
        ob_size: u64,
        /// `co_code_adaptive`.
        co_code_adaptive: u64,
    },
}

/// A code object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeObject {
    /// `co_qualname`, or `co_name` before 3.11.
    pub name: Text,
    /// `co_filename`, as the compiler was given it: relative paths and `<string>` occur.
    pub path: Text,
    /// `co_firstlineno`.
    pub first_line: i32,
    /// `co_flags`.
    pub flags: u32,
    /// `co_argcount`.
    pub arguments: u32,
    /// `co_posonlyargcount`; 0 before 3.8.
    pub positional_only: u32,
    /// `co_kwonlyargcount`.
    pub keyword_only: u32,
    /// The table of lines, up to [`MAX_LINE_TABLE`] bytes.
    pub line_table: Bytes,
    /// How it is written.
    pub line_format: LineFormat,
    /// What a frame keeps of its instruction.
    pub lasti: Lasti,
    /// Address of the bytecode; 0 up to 3.10, where frames need none.
    pub code_begin: u64,
    /// Bytes of bytecode. None in a code object that stands for a C function up to 3.10 (`PyCode_NewEmpty`).
    pub code_size: u32,
}

/// What should be a code object is none, or one that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GarbledCode {
    /// No object lies at such an address.
    #[error("no object can lie at {address:#x}")]
    Address {
        /// The address.
        address: u64,
    },
    /// A field of it cannot be read.
    #[error("{field}: {source}")]
    Unreadable {
        /// The field.
        field: &'static str,
        /// What cannot be read.
        source: Unreadable,
    },
    /// It is of another type.
    #[error("an object of the type at {found:#x}, no code object")]
    Type {
        /// Address of that type.
        found: u64,
    },
    /// A field has a value that no code object has.
    #[error("{field} is {value}")]
    Range {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// A field that should be a string or bytes is none.
    #[error("{field}: {source}")]
    Field {
        /// The field.
        field: &'static str,
        /// What it is instead.
        source: GarbledString,
    },
}

impl CodeObject {
    /// Reads the code object at `address`.
    ///
    /// # Errors
    /// If it is none, or cannot be read. Some objects that are none cannot be told if neither address of a type is known.
    pub fn read(
        memory: &impl Memory,
        address: u64,
        layout: &CodeLayout,
        strings: &StringLayout,
    ) -> Result<CodeObject, GarbledCode> {
        if address == 0 || !address.is_multiple_of(ALIGNMENT) {
            return Err(GarbledCode::Address { address });
        }
        let fields = Fields { memory, address, strings };
        fields.check_type(layout)?;
        let arguments = fields.count("co_argcount", layout.co_argcount)?;
        let (code_begin, code_size) = fields.bytecode(layout.bytecode)?;
        Ok(CodeObject {
            name: match layout.co_qualname {
                Some(offset) => fields.text("co_qualname", offset)?,
                None => fields.text("co_name", layout.co_name)?,
            },
            path: fields.text("co_filename", layout.co_filename)?,
            first_line: fields.u32("co_firstlineno", layout.co_firstlineno)?.cast_signed(),
            flags: fields.u32("co_flags", layout.co_flags)?,
            arguments,
            positional_only: fields.positional_only(layout.co_posonlyargcount, arguments)?,
            keyword_only: fields.count("co_kwonlyargcount", layout.co_kwonlyargcount)?,
            line_table: fields.bytes("co_linetable", layout.co_linetable)?,
            line_format: layout.line_format,
            lasti: layout.lasti,
            code_begin,
            code_size,
        })
    }

    /// Where in its code a frame is that keeps `raw` of its instruction; `None` if that is not in the code.
    pub fn position(&self, raw: u64) -> Option<Position> {
        self.lasti.position(raw, self.code_begin).filter(|position| match position {
            Position::NotStarted => true,
            Position::At(offset) => *offset < self.code_size,
        })
    }

    /// Whether it is of no function: a frame that awaits `__init__` where a class is called without C between, from 3.12 on
    /// (`_Py_InitCleanup`; seen on 3.13.0). To `sys._getframe` its caller is that of `__init__` (3.13.18, 3.14.10, 3.15.2).
    pub fn is_trampoline(&self) -> bool {
        const CALLED: &str = "__init__";
        /// It has three instructions and one to resume.
        const BYTECODE: u32 = 16;
        self.name.text == CALLED && self.path.text == CALLED && self.code_size <= BYTECODE
    }

    /// The line of a frame that keeps `raw` of its instruction.
    pub fn line_of(&self, raw: u64) -> Line {
        match self.position(raw) {
            Some(Position::NotStarted) => u32::try_from(self.first_line).map_or(Line::Unknown, Line::Number),
            Some(Position::At(offset)) => self.line_at(offset),
            None => Line::Unknown,
        }
    }

    /// The line of the instruction at `offset`, in bytes of bytecode.
    pub fn line_at(&self, offset: u32) -> Line {
        let table = &self.line_table;
        let range = lines::range_at(self.line_format, &table.bytes, self.first_line, offset);
        // The last range of a cut `co_lnotab` would not have been the last.
        range.filter(|range| !(table.is_cut && range.end == u32::MAX)).map_or(Line::Unknown, |range| range.line)
    }
}

struct Fields<'a, M> {
    memory: &'a M,
    address: u64,
    strings: &'a StringLayout,
}

impl<M: Memory> Fields<'_, M> {
    fn check_type(&self, layout: &CodeLayout) -> Result<(), GarbledCode> {
        let found = self.u64("ob_type", layout.ob_type)?;
        match layout.code_type {
            Some(expected) if found != expected => Err(GarbledCode::Type { found }),
            _ => Ok(()),
        }
    }

    /// Where it begins, if frames point into it, and its size.
    fn bytecode(&self, bytecode: Bytecode) -> Result<(u64, u32), GarbledCode> {
        let (begin, size) = match bytecode {
            Bytecode::Object { co_code } => (0, self.length_of("co_code", co_code)?),
            Bytecode::Inline { ob_size, co_code_adaptive } => {
                let units = self.u64("ob_size", ob_size)?;
                (self.address.wrapping_add(co_code_adaptive), units.saturating_mul(u64::from(CODE_UNIT)))
            }
        };
        match u32::try_from(size) {
            Ok(size32) if size < MAX_CODE => Ok((begin, size32)),
            _ => Err(GarbledCode::Range { field: "size of the code", value: size.cast_signed() }),
        }
    }

    fn positional_only(&self, offset: Option<u64>, arguments: u32) -> Result<u32, GarbledCode> {
        let Some(offset) = offset else { return Ok(0) };
        let field = "co_posonlyargcount";
        let count = self.count(field, offset)?;
        if count <= arguments { Ok(count) } else { Err(GarbledCode::Range { field, value: i64::from(count) }) }
    }

    fn count(&self, field: &'static str, offset: u64) -> Result<u32, GarbledCode> {
        let count = self.u32(field, offset)?;
        let value = i64::from(count.cast_signed());
        if count <= MAX_ARGUMENTS { Ok(count) } else { Err(GarbledCode::Range { field, value }) }
    }

    fn text(&self, field: &'static str, offset: u64) -> Result<Text, GarbledCode> {
        let object = self.u64(field, offset)?;
        self.strings.text(self.memory, object).map_err(|source| GarbledCode::Field { field, source })
    }

    fn bytes(&self, field: &'static str, offset: u64) -> Result<Bytes, GarbledCode> {
        let object = self.u64(field, offset)?;
        let bytes = self.strings.bytes(self.memory, object, MAX_LINE_TABLE);
        bytes.map_err(|source| GarbledCode::Field { field, source })
    }

    fn length_of(&self, field: &'static str, offset: u64) -> Result<u64, GarbledCode> {
        let object = self.u64(field, offset)?;
        self.strings.bytes_length(self.memory, object).map_err(|source| GarbledCode::Field { field, source })
    }

    fn u32(&self, field: &'static str, offset: u64) -> Result<u32, GarbledCode> {
        let value = self.memory.u32(self.address.wrapping_add(offset));
        value.map_err(|source| GarbledCode::Unreadable { field, source })
    }

    fn u64(&self, field: &'static str, offset: u64) -> Result<u64, GarbledCode> {
        let value = self.memory.u64(self.address.wrapping_add(offset));
        value.map_err(|source| GarbledCode::Unreadable { field, source })
    }
}
