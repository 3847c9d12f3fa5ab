//! Just enough BTF (BPF type format): where a member lies in a struct of the running kernel.
//!
//! aya-obj parses BTF too, but keeps the members of structs to itself. Layout: include/uapi/linux/btf.h.

use std::path::Path;

/// Where the kernel keeps its own type information.
pub const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
const KIND_STRUCT: u32 = 4;

/// Why an offset cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BtfError {
    /// No BTF.
    #[error("cannot read the kernel's type information at {KERNEL_BTF}: {0}")]
    Read(#[from] std::io::Error),
    /// Not BTF, or cut off.
    #[error("the kernel's type information is damaged: {0}")]
    Damaged(&'static str),
    /// The kernel has no such struct or member.
    #[error("the kernel's type information has no {0}.{1}")]
    Missing(&'static str, &'static str),
}

/// The running kernel's types.
pub struct KernelTypes {
    raw: Vec<u8>,
    types: usize,
    types_end: usize,
    strings: usize,
}

impl KernelTypes {
    /// Reads the running kernel's BTF.
    pub fn load() -> Result<KernelTypes, BtfError> {
        KernelTypes::parse(std::fs::read(Path::new(KERNEL_BTF))?)
    }

    fn parse(raw: Vec<u8>) -> Result<KernelTypes, BtfError> {
        let magic = raw.get(..2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        if magic != Some(MAGIC) {
            return Err(BtfError::Damaged("no magic"));
        }
        let field = |at| word(&raw, at).map(|value| value as usize).ok_or(BtfError::Damaged("short header"));
        let (header, types, types_length, strings) = (field(4)?, field(8)?, field(12)?, field(16)?);
        let (types, strings) = (header.saturating_add(types), header.saturating_add(strings));
        let types_end = types.saturating_add(types_length);
        if types_end > raw.len() || strings > raw.len() {
            return Err(BtfError::Damaged("sections outside the file"));
        }
        Ok(KernelTypes { raw, types, types_end, strings })
    }

    /// Offsets in bytes of several members, each `(struct, member)`.
    pub fn offsets<const N: usize>(&self, wanted: [(&'static str, &'static str); N]) -> Result<[u32; N], BtfError> {
        let mut found = [None; N];
        let mut at = self.types;
        while at < self.types_end {
            let (name, info) = (self.word(at)?, self.word(at + 4)?);
            let (kind, count) = (info >> 24 & 31, (info & 0xffff) as usize);
            if kind == KIND_STRUCT {
                let name = self.text(name);
                for (slot, (_, member)) in
                    found.iter_mut().zip(wanted).filter(|(slot, (of, _))| slot.is_none() && of.as_bytes() == name)
                {
                    *slot = self.member(at + 12, count, info >> 31 == 1, member)?;
                }
            }
            at += 12 + extra_bytes(kind, count)?;
        }
        let mut offsets = [0; N];
        for ((offset, found), (of, member)) in offsets.iter_mut().zip(found).zip(wanted) {
            *offset = found.ok_or(BtfError::Missing(of, member))?;
        }
        Ok(offsets)
    }

    /// Offset in bytes of `name` among the members at `at`. With `bitfields`, the low 24 bits are the bit offset.
    fn member(&self, at: usize, count: usize, bitfields: bool, name: &str) -> Result<Option<u32>, BtfError> {
        for index in 0..count {
            let member = at + index * 12;
            if self.text(self.word(member)?) == name.as_bytes() {
                let bits = self.word(member + 8)?;
                return Ok(Some(if bitfields { bits & 0xff_ffff } else { bits } / 8));
            }
        }
        Ok(None)
    }

    fn word(&self, at: usize) -> Result<u32, BtfError> {
        word(&self.raw, at).ok_or(BtfError::Damaged("cut off"))
    }

    fn text(&self, at: u32) -> &[u8] {
        let bytes = self.raw.get(self.strings.saturating_add(at as usize)..).unwrap_or_default();
        bytes.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

fn word(raw: &[u8], at: usize) -> Option<u32> {
    let bytes = raw.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Bytes that follow the 12 of `struct btf_type`, by `BTF_KIND_*`.
fn extra_bytes(kind: u32, count: usize) -> Result<usize, BtfError> {
    Ok(match kind {
        // pointer, forward, typedef, volatile, const, restrict, function, float, type tag
        2 | 7..=12 | 16 | 18 => 0,
        // integer, variable, declaration tag
        1 | 14 | 17 => 4,
        // array
        3 => 12,
        // struct, union, data section, 64-bit enumeration
        4 | 5 | 15 | 19 => count * 12,
        // enumeration, function prototype
        6 | 13 => count * 8,
        _ => return Err(BtfError::Damaged("unknown kind of type")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// bpftool is not everywhere; the oracle is what the kernel says through another way: pid and tgid of this
    /// process lie side by side, as ints, since 2.6.
    #[test]
    fn members_of_the_running_kernel() {
        let types = KernelTypes::load().expect("this kernel has BTF");
        let [pid, tgid, flags] = types
            .offsets([("task_struct", "pid"), ("task_struct", "tgid"), ("task_struct", "flags")])
            .expect("members");
        assert_eq!(tgid, pid + 4);
        assert!(flags > 0 && flags < pid);
        let missing = types.offsets([("task_struct", "no_such_member")]);
        assert!(matches!(missing, Err(BtfError::Missing("task_struct", "no_such_member"))));
    }

    #[test]
    fn damage_is_an_error() {
        let raw = std::fs::read(KERNEL_BTF).expect("this kernel has BTF");
        assert!(KernelTypes::parse(Vec::new()).is_err());
        assert!(KernelTypes::parse(raw[..20].to_vec()).is_err());
        for cut in [24, 100, 1000, raw.len() / 2] {
            let mut short = raw[..cut].to_vec();
            short[12..16].copy_from_slice(&(cut as u32).to_le_bytes());
            assert!(KernelTypes::parse(short).is_err(), "cut at {cut}");
        }
    }
}
