//! Samples with what they were made from, for those who check walks.

use std::fs::File;

use abi::process::Mapping;
use abi::record::Registers;

use crate::known_objects::KnownObjects;
use crate::ring::DeferredSample;

/// Is shown every sample that had a user stack.
pub trait Witness {
    /// Looks at one.
    fn see(&mut self, evidence: &Evidence);
}

/// A sample: the registers and the memory that it was walked from, and what the walks came to.
pub struct Evidence<'a> {
    pub(crate) sample: &'a DeferredSample,
    pub(crate) objects: &'a KnownObjects,
    /// Executable mappings of the process when the sample was taken, sorted.
    pub mappings: &'a [Mapping],
    /// Which process it is; unlike its id never used again.
    pub instance: u64,
    /// What the sampler found in the kernel, as [`abi::word`]s; `None` if it left the sample to user space.
    pub in_kernel: Option<&'a [u64]>,
    /// What the same walk finds in user space.
    pub in_user_space: &'a [u64],
}

impl Evidence<'_> {
    /// Process and thread, in the initial pid namespace.
    pub fn ids(&self) -> (u32, u32) {
        (self.sample.key.pid, self.sample.key.tid)
    }

    /// Name of the thread.
    pub fn name(&self) -> String {
        let bytes = self.sample.key.comm.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// User registers.
    pub fn registers(&self) -> &Registers {
        &self.sample.registers
    }

    /// Whether the task was replacing its image: then the registers may belong to none.
    pub fn is_execing(&self) -> bool {
        self.sample.execing
    }

    /// The 8 bytes of stack at `address`; `None` if they were not copied.
    pub fn word(&self, address: u64) -> Option<u64> {
        self.sample.word(address)
    }

    /// Bytes of the copied stack, from the stack pointer up.
    pub fn stack_bytes(&self) -> usize {
        self.sample.stack.len()
    }

    /// Path and open file of the object with this number.
    pub fn object(&self, number: u32) -> Option<(&str, Option<&File>)> {
        let object = self.objects.get(number)?;
        Some((&object.path, object.file.as_ref().map(|file| file.file())))
    }
}
