//! A layout as those who name code objects need it.

use super::Layout;
use super::confirm::Types;
use crate::code_object::{Bytecode, CodeLayout};
use crate::lines::LineFormat;
use crate::strings::{StringLayout, WideLayout};

/// Bits below `kind` in a string's state (Include/cpython/unicodeobject.h of builds with a GIL).
const KIND_SHIFT: u32 = 2;

impl Layout {
    /// Of code objects, whose type lies at `code_type`.
    pub fn code_layout(&self, code_type: u64) -> CodeLayout {
        let code = &self.code;
        CodeLayout {
            code_type: Some(code_type),
            ob_type: self.object.ob_type.into(),
            co_argcount: code.argcount.into(),
            co_posonlyargcount: code.posonlyargcount.map(u64::from),
            co_kwonlyargcount: code.kwonlyargcount.into(),
            co_flags: code.flags.into(),
            co_firstlineno: code.firstlineno.into(),
            co_filename: code.filename.into(),
            co_name: code.name.into(),
            co_qualname: code.qualname.map(u64::from),
            co_linetable: code.linetable.into(),
            bytecode: match (code.code_adaptive, code.bytecode) {
                (None, Some(co_code)) => Bytecode::Object { co_code: co_code.into() },
                (adaptive, _) => Bytecode::Inline {
                    ob_size: self.object.ob_size.into(),
                    co_code_adaptive: adaptive.unwrap_or(code.size).into(),
                },
            },
            line_format: match self.version.minor {
                ..=9 => LineFormat::Lnotab,
                10 => LineFormat::Pairs,
                _ => LineFormat::Locations,
            },
            lasti: self.lasti,
        }
    }

    /// Of strings and bytes objects.
    pub fn string_layout(&self, types: &Types) -> StringLayout {
        let text = &self.text;
        let wide = text.wide.zip(text.wide_length);
        StringLayout {
            str_type: Some(types.unicode),
            bytes_type: Some(types.bytes),
            ob_type: self.object.ob_type.into(),
            tp_flags: self.types.flags.into(),
            tp_base: self.types.base.into(),
            length: text.length.into(),
            state: text.state.into(),
            kind_shift: KIND_SHIFT,
            ascii_data: text.ascii.into(),
            compact_data: text.compact.into(),
            data: text.compact.into(),
            wide: wide.map(|(wstr, length)| WideLayout { wstr: wstr.into(), wstr_length: length.into() }),
            bytes_size: self.object.ob_size.into(),
            bytes_data: text.bytes.into(),
        }
    }
}
