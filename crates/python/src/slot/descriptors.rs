//! glibc's own description of where a thread's values lie, which it exports for debuggers (nptl_db/structs.def and
//! nptl_db/db_info.c).

use objects::Architecture;

use super::file::LibraryFile;
use super::{SlotLayout, measured};

/// Names, in the order in which they are used below. The first four have the size of an element in bits, the number of
/// elements and an offset in bytes; the others a size in bytes.
const NAMES: [&str; 5] = [
    "_thread_db_pthread_specific",
    "_thread_db_pthread_key_data_level2_data",
    "_thread_db_pthread_key_data_data",
    "_thread_db_sizeof_pthread_key_data",
    "_thread_db_sizeof_pthread",
];

/// What the descriptors say, bytes within `struct pthread` where it is not said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptors {
    /// Where the pointers to the blocks are.
    pub specific: u32,
    /// How many.
    pub blocks: u32,
    /// Keys of a block.
    pub keys_per_block: u32,
    /// Bytes of `struct pthread_key_data`.
    pub key_data: u32,
    /// Where in it the value is.
    pub data: u32,
    /// Bytes of `struct pthread`.
    pub pthread: u32,
}

/// Reads the descriptors of a library. `None` if it has none; `Some(None)` if it has some only, or they are nonsense.
pub(super) fn read(file: &LibraryFile) -> Option<Option<Descriptors>> {
    let addresses = file.addresses(&NAMES);
    addresses.iter().any(Option::is_some).then(|| decode(file, addresses))
}

fn decode(file: &LibraryFile, addresses: [Option<u64>; 5]) -> Option<Descriptors> {
    let [specific, level2, data, key_data, pthread] = addresses;
    let [pointer_bits, pointers, specific] = file.numbers(specific?)?;
    let [element_bits, elements, _] = file.numbers(level2?)?;
    let [data_bits, _, data] = file.numbers(data?)?;
    let ([key_data], [pthread]) = (file.numbers(key_data?)?, file.numbers(pthread?)?);
    let total = pointer_bits.checked_mul(pointers)?;
    let is_sound = total > 0
        && total.is_multiple_of(64)
        && data_bits == 64
        && Some(element_bits) == key_data.checked_mul(8)
        && data.checked_add(8)? <= key_data
        && specific.checked_add(total / 8)? <= pthread
        && elements > 0;
    is_sound.then_some(Descriptors { specific, blocks: total / 64, keys_per_block: elements, key_data, data, pthread })
}

impl Descriptors {
    /// The layout, if the first block lies right before the pointers, as it does in nptl/descr.h since 2003.
    pub(super) fn layout(&self, architecture: Architecture) -> Option<SlotLayout> {
        let first = self.specific.checked_sub(self.keys_per_block.checked_mul(self.key_data)?)?;
        // where `struct pthread` begins, from the thread pointer (sysdeps/x86_64 and aarch64, nptl/tls.h)
        let begin = match architecture {
            Architecture::X86_64 => 0,
            Architecture::Aarch64 => -i64::from(self.pthread),
        };
        let from_pointer = |offset: u32| i32::try_from(begin + i64::from(offset)).ok();
        Some(SlotLayout {
            inline: from_pointer(first.checked_add(self.data)?)?,
            blocks: from_pointer(self.specific)?,
            stride: u16::try_from(self.key_data).ok()?,
            data: u16::try_from(self.data).ok()?,
            inline_keys: u16::try_from(self.keys_per_block).ok()?,
            keys_per_block: u16::try_from(self.keys_per_block).ok()?,
            keys: u16::try_from(self.blocks.checked_mul(self.keys_per_block)?).ok()?,
        })
    }

    /// Whether they say what was measured; the size of `struct pthread` may be any.
    pub(super) fn are_as_measured(&self, architecture: Architecture) -> bool {
        let (_, blocks) = measured::glibc(architecture);
        let is_known = |layout| measured::is_glibc(&layout, architecture);
        i64::from(self.specific) == i64::from(blocks) && self.layout(architecture).is_some_and(is_known)
    }
}
