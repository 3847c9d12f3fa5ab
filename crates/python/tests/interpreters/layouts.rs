//! Layouts by version, as a probe measured them that was compiled against each version's own headers (x86_64, LP64): pyenv's 3.6.15
//! to 3.13.0, Debian's 3.13.18, 3.14.10 and 3.15.2; with `Py_GIL_DISABLED` 3.13.0, 3.14.10 and 3.15.2.

use python::code_object::{Bytecode, CodeLayout};
use python::lines::LineFormat;
use python::lines::lasti::Lasti;
use python::strings::{StringLayout, WideLayout};

/// Addresses of built-in types in a process.
#[derive(Clone, Copy, Default, Debug)]
pub struct Types {
    pub of_str: Option<u64>,
    pub of_bytes: Option<u64>,
    pub of_code: Option<u64>,
}

/// The layout of strings in 3.`minor`.
pub fn strings(minor: u8, is_free_threaded: bool, types: Types) -> StringLayout {
    let header = if is_free_threaded { 32 } else { 16 };
    let is_old = minor < 12;
    let ascii_data = header + if is_old { 32 } else { 24 };
    let compact_data = ascii_data + if is_old { 24 } else { 16 };
    StringLayout {
        str_type: types.of_str,
        bytes_type: types.of_bytes,
        ob_type: header - 8,
        tp_flags: header + 152,
        tp_base: header + 240,
        length: header,
        state: header + 16,
        kind_shift: if is_free_threaded && minor >= 14 { 8 } else { 2 },
        ascii_data,
        compact_data,
        data: compact_data,
        wide: is_old.then_some(WideLayout { wstr: 40, wstr_length: 64 }),
        bytes_size: header,
        bytes_data: header + 16,
    }
}

/// The layout of code objects in 3.`minor`.
pub fn codes(minor: u8, is_free_threaded: bool, types: Types) -> CodeLayout {
    let more = if is_free_threaded { 16 } else { 0 };
    // co_argcount, co_kwonlyargcount, co_flags, co_firstlineno, co_filename; co_posonlyargcount lies behind co_argcount.
    let [arguments, keyword_only, flags, first_line, path] = match minor {
        ..8 => [16, 20, 32, 36, 96],
        8..=10 => [16, 24, 36, 40, 104],
        11 => [56, 64, 48, 72, 112],
        _ => [52, 60, 48, 68, 112],
    };
    let path = path + more;
    let code = match minor {
        ..8 => 40,
        8..=10 => 48,
        11 => 184,
        12 => 192,
        13 => 200 + more,
        _ => 208 + more + more / 2,
    };
    CodeLayout {
        code_type: types.of_code,
        ob_type: more + 8,
        co_argcount: arguments + more,
        co_posonlyargcount: (minor >= 8).then_some(arguments + 4 + more),
        co_kwonlyargcount: keyword_only + more,
        co_flags: flags + more,
        co_firstlineno: first_line + more,
        co_filename: path,
        co_name: path + 8,
        co_qualname: (minor >= 11).then_some(path + 16),
        co_linetable: path + if minor >= 11 { 24 } else { 16 },
        bytecode: match minor {
            ..=10 => Bytecode::Object { co_code: code },
            _ => Bytecode::Inline { ob_size: 16 + more, co_code_adaptive: code },
        },
        line_format: line_format(minor),
        lasti: match minor {
            ..10 => Lasti::ByteOffset,
            10 => Lasti::UnitIndex,
            11 | 12 => Lasti::PreviousUnit,
            _ => Lasti::InstructionPointer,
        },
    }
}

/// How 3.`minor` writes line tables.
pub fn line_format(minor: u8) -> LineFormat {
    match minor {
        ..10 => LineFormat::Lnotab,
        10 => LineFormat::Pairs,
        _ => LineFormat::Locations,
    }
}
