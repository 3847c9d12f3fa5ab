//! The way from a thread pointer to the thread's state, as the walker takes it.

use abi::python::{LOADS, Slot};

use crate::code::{Access, ThreadLocal};
use crate::file::Architecture;
use crate::slot::{FoundSlots, ProcessSlotRefusal, ProcessSlots, SlotEvidence, SlotLayout, SlotPlace};
use crate::{Memory, Refusal};

/// Bytes of an entry of glibc's array of modules' blocks (`dtv_t`: the block's address, and what to free; sysdeps/generic/dl-dtv.h).
const GLIBC_DTV_ENTRY: u64 = 16;
/// The same of musl (`uintptr_t`; src/internal/pthread_impl.h).
const MUSL_DTV_ENTRY: u64 = 8;
/// Where glibc keeps the array's address, in bytes from the thread pointer: `tcbhead_t.dtv` of sysdeps/x86_64/nptl/tls.h,
/// and the first word on aarch64 (sysdeps/aarch64/nptl/tls.h). musl has it there, too (arch/*/pthread_arch.h: `dtv` is the
/// second word of x86_64's `struct pthread`, and the word at the thread pointer where thread-local blocks lie above it).
const fn dtv_at(architecture: Architecture) -> i32 {
    match architecture {
        Architecture::X86_64 => 8,
        Architecture::Aarch64 => 0,
    }
}

/// Modules at most; their number is a small one that the dynamic linker counts up.
const MODULES: u64 = 1 << 16;
/// Distances of thread-local variables from the thread pointer at most, in bytes.
const NEAR: i64 = 1 << 30;

/// What a C library does with threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Library {
    /// Where values of keys lie.
    pub slots: SlotLayout,
    /// Bytes from the thread pointer to what `pthread_self` gives.
    pub thread_self: i32,
    /// Whether it is musl.
    pub musl: bool,
}

/// glibc on aarch64: bytes from `struct pthread` to the value of key 0 (`specific_1stblock` 272, and 8 within the first entry;
/// measured on 2.36, probe `tests/probes`).
const AARCH64_GLIBC_FIRST_VALUE: i32 = 280;

impl Library {
    /// What came of a search for it.
    ///
    /// # Errors
    /// As the search's, and those of [`Library::of`].
    pub fn found(
        result: Result<ProcessSlots, ProcessSlotRefusal>,
        architecture: Architecture,
    ) -> Result<Library, Refusal> {
        match result {
            Ok(slots) => Library::of(&slots.found, architecture),
            Err(ProcessSlotRefusal::Refused { refusal, .. }) => Err(Refusal::Slots(refusal)),
            Err(ProcessSlotRefusal::Ambiguous { first, second }) => {
                Err(Refusal::TwoLibraries(first.display().to_string(), second.display().to_string()))
            }
            Err(ProcessSlotRefusal::NoLibrary { .. } | ProcessSlotRefusal::Mappings { .. }) => Err(Refusal::NoLibrary),
        }
    }

    /// By what its file says.
    ///
    /// # Errors
    /// On aarch64 `pthread_self` gives an address below the thread pointer, whose distance is not known of musl.
    pub fn of(found: &FoundSlots, architecture: Architecture) -> Result<Library, Refusal> {
        let slots = found.layout;
        let musl = matches!(found.evidence, SlotEvidence::GetAndSet | SlotEvidence::GetAndMeasured);
        let thread_self = match (architecture, musl) {
            (Architecture::X86_64, _) => 0,
            (Architecture::Aarch64, false) => slots.inline - AARCH64_GLIBC_FIRST_VALUE,
            (Architecture::Aarch64, true) => return Err(Refusal::ThreadSelf),
        };
        Ok(Library { slots, thread_self, musl })
    }
}

fn way<const N: usize>(steps: [i32; N], library: &Library) -> Slot {
    let mut all = [0; LOADS];
    all.iter_mut().zip(steps).for_each(|(to, from)| *to = from);
    Slot { loads: N as u32, steps: all, thread_self: library.thread_self, reserved: 0 }
}

/// The way through the value of a key.
///
/// # Errors
/// If there can be no such key.
pub fn of_key(key: u32, library: &Library) -> Result<Slot, Refusal> {
    // with a thread pointer of 0, places are distances
    match library.slots.place(0, key)? {
        SlotPlace::At(distance) => Ok(way([near("the key's value", distance)?], library)),
        SlotPlace::Behind { pointer, offset } => {
            Ok(way([near("the block of the key", pointer)?, near("the key's value", offset)?], library))
        }
    }
}

/// The way to a thread-local variable. What the dynamic linker has written into the file's slots is read from the process.
///
/// # Errors
/// If a slot cannot be read, or holds what cannot be followed.
pub fn of_thread_local(
    variable: &ThreadLocal,
    bias: u64,
    architecture: Architecture,
    memory: &impl Memory,
    library: &Library,
) -> Result<Slot, Refusal> {
    let word = |slot: u64, index: u64| memory.u64(bias.wrapping_add(slot).wrapping_add(8 * index));
    let direct = |distance: i64| Ok(way([near("the thread-local variable", distance.cast_unsigned())?], library));
    match variable.access {
        Access::ThreadPointer => direct(variable.offset),
        Access::Distance { slot } => direct(word(slot, 0)?.cast_signed().wrapping_add(variable.offset)),
        Access::Module { slot } => through_module(word(slot, 0)?, variable.offset, architecture, library),
        Access::Descriptor { slot } => {
            let argument = word(slot, 1)?.cast_signed();
            if argument.abs() < NEAR {
                return direct(argument.wrapping_add(variable.offset));
            }
            // `struct tlsdesc_dynamic_arg` of glibc (sysdeps/x86_64/tlsdesc.h): module and offset
            let at = |index: u64| memory.u64(argument.cast_unsigned().wrapping_add(8 * index));
            if library.musl {
                return Err(Refusal::ThreadLocal("a descriptor of musl that points outside static memory"));
            }
            through_module(at(0)?, at(1)?.cast_signed().wrapping_add(variable.offset), architecture, library)
        }
    }
}

/// The way through the array of modules' blocks.
fn through_module(module: u64, offset: i64, architecture: Architecture, library: &Library) -> Result<Slot, Refusal> {
    if module == 0 || module > MODULES {
        return Err(Refusal::ThreadLocal("its module has no number: the dynamic linker has not written it"));
    }
    let entry = if library.musl { MUSL_DTV_ENTRY } else { GLIBC_DTV_ENTRY };
    let offset = near("the variable in its block", offset.cast_unsigned())?;
    Ok(way([dtv_at(architecture), near("the module's block", module * entry)?, offset], library))
}

fn near(what: &'static str, distance: u64) -> Result<i32, Refusal> {
    i32::try_from(distance.cast_signed()).map_err(|_| Refusal::TooFar(what, distance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unreadable;

    /// glibc 2.36 on x86_64.
    const GLIBC: SlotLayout = SlotLayout {
        inline: 0x318,
        blocks: 0x510,
        stride: 16,
        data: 8,
        inline_keys: 32,
        keys_per_block: 32,
        keys: 1024,
    };
    const LIBRARY: Library = Library { slots: GLIBC, thread_self: 0, musl: false };

    /// Words at addresses.
    struct Words(&'static [(u64, u64)]);

    impl Memory for Words {
        fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
            let found =
                self.0.iter().find(|(at, _)| *at == address).ok_or(Unreadable { address, length: into.len() })?;
            into.copy_from_slice(&found.1.to_le_bytes()[..into.len()]);
            Ok(())
        }
    }

    fn steps(slot: Result<Slot, Refusal>) -> Vec<i32> {
        let slot = slot.expect("a way");
        slot.steps[..slot.loads as usize].to_vec()
    }

    #[test]
    fn keys_lie_in_blocks() {
        assert_eq!(steps(of_key(0, &LIBRARY)), [0x318]);
        assert_eq!(steps(of_key(31, &LIBRARY)), [0x318 + 31 * 16]);
        assert_eq!(steps(of_key(33, &LIBRARY)), [0x518, 24]);
        assert!(matches!(of_key(1024, &LIBRARY), Err(Refusal::Key(_))));
        let far = Library { slots: SlotLayout { keys_per_block: 1, inline_keys: 0, ..GLIBC }, ..LIBRARY };
        assert_eq!(steps(of_key(2, &far)), [0x520, 8]);
    }

    #[test]
    fn thread_local_variables_are_reached_in_every_way() {
        let way = |access, offset, words| {
            let variable = ThreadLocal { access, offset, in_block: 0 };
            of_thread_local(&variable, 0x1000, Architecture::X86_64, &Words(words), &LIBRARY)
        };
        assert_eq!(steps(way(Access::ThreadPointer, -0x28, &[])), [-0x28]);
        assert_eq!(steps(way(Access::Distance { slot: 0x10 }, 8, &[(0x1010, u64::MAX - 63)])), [-56]);
        assert_eq!(steps(way(Access::Module { slot: 0x20 }, 0x28, &[(0x1020, 3)])), [8, 48, 0x28]);
        assert_eq!(steps(way(Access::Descriptor { slot: 0x30 }, 0, &[(0x1038, 0x40)])), [0x40]);
        let dynamic = &[(0x1038, 0x7f00_0000_0000), (0x7f00_0000_0000, 2), (0x7f00_0000_0008, 0x18)];
        assert_eq!(steps(way(Access::Descriptor { slot: 0x30 }, 0, dynamic)), [8, 32, 0x18]);
        // what the dynamic linker has not written, and what is not there
        assert!(matches!(way(Access::Module { slot: 0x20 }, 0, &[(0x1020, 0)]), Err(Refusal::ThreadLocal(_))));
        assert!(matches!(way(Access::Module { slot: 0x20 }, 0, &[]), Err(Refusal::Unreadable(_))));
        assert!(matches!(way(Access::Distance { slot: 0x10 }, 0, &[(0x1010, 1 << 40)]), Err(Refusal::TooFar(..))));
    }

    #[test]
    fn what_pthread_self_gives() {
        let found = |evidence| FoundSlots { layout: SlotLayout { inline: -1576, ..GLIBC }, evidence };
        let of =
            |evidence, architecture| Library::of(&found(evidence), architecture).map(|library| library.thread_self);
        assert_eq!(of(SlotEvidence::DescriptorsAndCode, Architecture::X86_64), Ok(0));
        // glibc 2.36: `struct pthread` has 1856 bytes
        assert_eq!(of(SlotEvidence::DescriptorsAndCode, Architecture::Aarch64), Ok(-1856));
        assert_eq!(of(SlotEvidence::GetAndSet, Architecture::Aarch64), Err(Refusal::ThreadSelf));
    }
}
