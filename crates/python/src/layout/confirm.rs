//! Offsets confirmed by the interpreter's own types: `tp_basicsize` says how long their objects are, and `tp_members`
//! where they keep the attributes that Python code can read. Both lie in the file, relocated, and in the live process.

use super::refusal::Reading;
use super::{Lasti, Layout, LayoutRefusal};
use crate::Memory;

/// Entries of `tp_members` at most; code objects have 16.
const MEMBERS: usize = 64;
/// `PyMemberDef` (Include/structmember.h): name, type, offset, flags, doc.
const MEMBER: u64 = 40;
const MEMBER_OFFSET: u64 = 16;
/// Bytes of a name at most, with the 0 behind it.
const NAME: usize = 32;

/// `Py_TPFLAGS_UNICODE_SUBCLASS`, `Py_TPFLAGS_BYTES_SUBCLASS` (Include/object.h), and `Py_TPFLAGS_LIST_SUBCLASS`, `_TUPLE_`, `_LONG_`
/// and others beside them, of which a type has one at most.
const STRING_FLAG: u64 = 1 << 28;
const BYTES_FLAG: u64 = 1 << 27;
const SUBCLASS_FLAGS: u64 = 0xff << 24;

/// Addresses of exported types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Types {
    /// `PyCode_Type`.
    pub code: u64,
    /// `PyFrame_Type`.
    pub frame: u64,
    /// `PyUnicode_Type`.
    pub unicode: u64,
    /// `PyBytes_Type`.
    pub bytes: u64,
}

impl Types {
    /// The names of the symbols, in the order of the fields.
    pub const SYMBOLS: [&str; 4] = ["PyCode_Type", "PyFrame_Type", "PyUnicode_Type", "PyBytes_Type"];
}

/// Confirms the offsets that types speak of. The names of those that were confirmed.
///
/// # Errors
/// If the types are not found, or one offset is not as measured.
pub fn confirm<M: Memory>(layout: &Layout, memory: &M, types: &Types) -> Result<Vec<&'static str>, LayoutRefusal> {
    refuse_other_headers(layout, memory, types.code)?;
    let code = Named::find(layout, memory, "code", types.code)?;
    let frame = Named::find(layout, memory, "frame", types.frame)?;
    let unicode = Named::find(layout, memory, "str", types.unicode)?;
    let bytes = Named::find(layout, memory, "bytes", types.bytes)?;
    let mut confirmed = vec!["object.ob_type", "type.name", "type.base", "type.flags", "type.basicsize"];
    unicode.flag(STRING_FLAG)?;
    bytes.flag(BYTES_FLAG)?;
    // `sizeof(PyUnicodeObject)` is that of the part that compact strings have, and a pointer; `PyBytesObject` has one byte more
    code.size("code.size", layout.code.size)?;
    unicode.size("text.compact", layout.text.compact.wrapping_add(8))?;
    bytes.size("text.bytes", layout.text.bytes.wrapping_add(1))?;
    confirmed.extend(["code.size", "text.compact", "text.bytes"]);
    if let Some(offset) = layout.code.code_adaptive {
        code.size("code.code_adaptive", offset)?;
        confirmed.push("code.code_adaptive");
    }
    confirmed.extend(wide(layout)?);
    code.members(&code_members(layout), &mut confirmed)?;
    frame.members(&frame_members(layout), &mut confirmed)?;
    confirmed.push("type.members");
    Ok(confirmed)
}

/// `PyASCIIObject` ends with `wstr` and `PyCompactUnicodeObject` with `wstr_length` where there are such.
fn wide(layout: &Layout) -> Result<Vec<&'static str>, LayoutRefusal> {
    let ends = [
        ("text.wide", layout.text.wide, layout.text.ascii),
        ("text.wide_length", layout.text.wide_length, layout.text.compact),
    ];
    let mut confirmed = Vec::new();
    for (field, offset, end) in ends {
        let Some(offset) = offset else { continue };
        agree(field, offset, u64::from(end).wrapping_sub(8), "the end of the structure")?;
        confirmed.push(field);
    }
    Ok(confirmed)
}

/// A field of the layout, the member that tells its offset, and the offset.
type Member = (&'static str, &'static str, Option<u32>);

fn code_members(layout: &Layout) -> [Member; 10] {
    let code = &layout.code;
    let table = if layout.version.minor < 10 { "co_lnotab" } else { "co_linetable" };
    [
        ("code.argcount", "co_argcount", Some(code.argcount)),
        ("code.posonlyargcount", "co_posonlyargcount", code.posonlyargcount),
        ("code.kwonlyargcount", "co_kwonlyargcount", Some(code.kwonlyargcount)),
        ("code.flags", "co_flags", Some(code.flags)),
        ("code.firstlineno", "co_firstlineno", Some(code.firstlineno)),
        ("code.filename", "co_filename", Some(code.filename)),
        ("code.name", "co_name", Some(code.name)),
        ("code.qualname", "co_qualname", code.qualname),
        ("code.linetable", table, Some(code.linetable)),
        ("code.bytecode", "co_code", code.bytecode),
    ]
}

/// From 3.11 on frames are no objects.
fn frame_members(layout: &Layout) -> [Member; 3] {
    let frame = &layout.frame;
    let objects = layout.version.minor <= 10;
    [
        ("frame.back", "f_back", objects.then_some(frame.back)),
        ("frame.code", "f_code", objects.then_some(frame.code)),
        ("frame.lasti", "f_lasti", (layout.lasti == Lasti::ByteOffset).then_some(frame.lasti)),
    ]
}

/// With `Py_TRACE_REFS` and without a GIL an object's header has 16 bytes more in front of the type.
fn refuse_other_headers<M: Memory>(layout: &Layout, memory: &M, code: u64) -> Result<(), LayoutRefusal> {
    const MORE: u32 = 16;
    let is_named = |at: u32| {
        let name = memory.u64(code.wrapping_add(at.into())).and_then(|name| name_at(memory, name));
        name.is_ok_and(|name| name.is("code"))
    };
    if !is_named(layout.types.name) && is_named(layout.types.name.wrapping_add(MORE)) {
        return Err(LayoutRefusal::ObjectHeader(MORE));
    }
    Ok(())
}

/// A type whose name was found to be as it must.
struct Named<'a, M> {
    layout: &'a Layout,
    memory: &'a M,
    name: &'static str,
    address: u64,
}

impl<'a, M: Memory> Named<'a, M> {
    /// These types are objects of the type `type` and extend `object`.
    fn find(
        layout: &'a Layout,
        memory: &'a M,
        name: &'static str,
        address: u64,
    ) -> Result<Named<'a, M>, LayoutRefusal> {
        let is_named = |address: u64, expected: &str| -> Result<bool, LayoutRefusal> {
            let at = memory.u64(address.wrapping_add(layout.types.name.into())).of("tp_name")?;
            Ok(name_at(memory, at).of("name of a type")?.is(expected))
        };
        let own_type = memory.u64(address.wrapping_add(layout.object.ob_type.into())).of("ob_type of a type")?;
        let base = memory.u64(address.wrapping_add(layout.types.base.into())).of("tp_base")?;
        if !is_named(address, name)? || !is_named(own_type, "type")? || !is_named(base, "object")? {
            return Err(LayoutRefusal::NotTheType { type_name: name, address });
        }
        Ok(Named { layout, memory, name, address })
    }

    fn flag(&self, expected: u64) -> Result<(), LayoutRefusal> {
        let at = self.address.wrapping_add(self.layout.types.flags.into());
        let found = self.memory.u64(at).of("tp_flags")?;
        if found & SUBCLASS_FLAGS == expected {
            return Ok(());
        }
        Err(LayoutRefusal::Live { field: "type.flags", found, expected: "must say what kind of objects the type has" })
    }

    fn size(&self, field: &'static str, expected: u32) -> Result<(), LayoutRefusal> {
        let at = self.address.wrapping_add(self.layout.types.basicsize.into());
        let found = self.memory.u64(at).of("tp_basicsize")?;
        agree(field, expected, found, "tp_basicsize")
    }

    fn members(&self, wanted: &[Member], confirmed: &mut Vec<&'static str>) -> Result<(), LayoutRefusal> {
        let at = self.address.wrapping_add(self.layout.types.members.into());
        let members = self.read_members(self.memory.u64(at).of("tp_members")?)?;
        for (field, member, expected) in wanted {
            let Some(expected) = expected else { continue };
            let Some((_, found)) = members.iter().find(|(name, _)| name.is(member)) else {
                return Err(LayoutRefusal::NoMember { field, type_name: self.name, member });
            };
            agree(field, *expected, *found, "tp_members")?;
            confirmed.push(field);
        }
        Ok(())
    }

    fn read_members(&self, array: u64) -> Result<Vec<(Name, u64)>, LayoutRefusal> {
        let mut members = Vec::new();
        for index in 0..MEMBERS as u64 {
            let at = array.wrapping_add(index * MEMBER);
            let name = self.memory.u64(at).of("tp_members")?;
            if name == 0 {
                break;
            }
            let offset = self.memory.u64(at.wrapping_add(MEMBER_OFFSET)).of("tp_members")?;
            members.push((name_at(self.memory, name).of("name of a member")?, offset));
        }
        Ok(members)
    }
}

fn agree(field: &'static str, expected: u32, found: u64, source_name: &'static str) -> Result<(), LayoutRefusal> {
    if found == u64::from(expected) {
        return Ok(());
    }
    Err(LayoutRefusal::Disagrees { field, expected: expected.into(), found, source_name })
}

/// The beginning of a text that ends in 0.
struct Name([u8; NAME]);

impl Name {
    fn is(&self, text: &str) -> bool {
        self.0.starts_with(text.as_bytes()) && self.0.get(text.len()) == Some(&0)
    }
}

fn name_at<M: Memory>(memory: &M, address: u64) -> Result<Name, crate::Unreadable> {
    let mut name = Name([0; NAME]);
    for (index, byte) in name.0.iter_mut().enumerate() {
        *byte = memory.u8(address.wrapping_add(index as u64))?;
        if *byte == 0 {
            break;
        }
    }
    Ok(name)
}
