//! What a sample leaves for user space.
//!
//! A sample whose stack was seen before is one increment in the counts map. A new stack is sent once through the ring
//! buffer, as [`Header`] and words. A sample that cannot be walked yet (its process or a table is not known in
//! the kernel) is sent whole, with registers and a copy of its stack, and walked in user space by the same code.

/// Words that one stack may have; a power of two, since indices are masked. More frames than fit are cut in the middle.
pub const WORDS: usize = 8192;
/// Of those, words at the leaf's end that are kept when a stack is cut; the rest is a ring of the outermost frames.
pub const HEAD: usize = WORDS / 2;
/// Turns after which a walk gives up (a turn is a frame).
pub const TURNS: u32 = 32_768;
/// Kernel frames at most (the kernel's own default limit, `kernel.perf_event_max_stack`).
pub const KERNEL_WORDS: usize = 127;
/// Bytes of stack that a deferred sample carries at most.
pub const COPY_BYTES: usize = 128 * 1024;
/// Bytes that it carries at most while the ring buffer is filling up.
pub const SHORT_COPY_BYTES: usize = 16 * 1024;
/// The stack is copied in pieces of this size, a page of the smallest size that there is.
pub const COPY_PIECE: usize = 4096;
/// So many pieces in a row that cannot be read are taken for the end of the stack.
pub const COPY_GAP: u32 = 12;
/// User registers in DWARF order that a sample carries: 16 on x86_64, 31 and the stack pointer on aarch64.
pub const REGISTERS: usize = 32;

/// Key of the counts map: a stack of a thread. 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CountKey {
    /// Process id in the initial namespace.
    pub pid: u32,
    /// Thread id in the initial namespace.
    pub tid: u32,
    /// Name of the thread when the sample was taken.
    pub comm: [u8; 16],
    /// Hash of the stack's words.
    pub hash: u64,
}

/// Kinds of ring buffer records.
pub mod kind {
    /// A new stack: header and words.
    pub const STACK: u32 = 1;
    /// A deferred sample: header, registers, kernel words, stack bytes.
    pub const DEFERRED: u32 = 2;
    /// Memory that was given away: [`GivenAway`](super::GivenAway).
    pub const GIVEN_AWAY: u32 = 3;
    /// A code object of Python: [`CodeRecord`](super::CodeRecord).
    pub const CODE: u32 = 4;
}

/// Head of a ring buffer record. 56 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// A record [`kind`].
    pub kind: u32,
    /// For a stack: words that follow. For a deferred sample: bytes of stack.
    pub length: u32,
    /// Thread and stack; for a deferred sample the hash is 0.
    pub key: CountKey,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub time: u64,
    /// Words of the whole stack, also of those that found no room; `length` where all did.
    pub total: u32,
    /// Kernel words at the start.
    pub kernel: u32,
}

impl Header {
    /// All zero.
    pub const ZERO: Header = Header {
        kind: 0,
        length: 0,
        key: CountKey { pid: 0, tid: 0, comm: [0; 16], hash: 0 },
        time: 0,
        total: 0,
        kernel: 0,
    };
}

/// A stack as a walk leaves it and as it comes through the ring buffer (`header.length` words of it).
///
/// `words` holds kernel words, user words and the end, innermost first. When there are more than [`WORDS`], the first
/// [`HEAD`] stay and the rest is a ring of as many: word `i` of the walk is at `HEAD + (i - HEAD) % (WORDS - HEAD)`.
#[repr(C)]
pub struct Stack {
    /// About the stack.
    pub header: Header,
    /// The words.
    pub words: [u64; WORDS],
}

impl Stack {
    /// All zero.
    pub const ZERO: Stack = Stack { header: Header::ZERO, words: [0; WORDS] };
}

/// The kernel found memory of a process free and gave it away: what was mapped there is gone. 72 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GivenAway {
    /// `kind`, process and time.
    pub header: Header,
    /// First address.
    pub begin: u64,
    /// First address behind it.
    pub end: u64,
}

/// Stretches of memory that a code object's record has at most.
pub const FRAGMENTS: usize = 16;
/// Bytes of memory that it has at most.
pub const FRAGMENT_BYTES: usize = 16 * 1024;

/// A code object of Python, read when a sample met it for the first time: what its names and lines are made from, as pieces of
/// the process's memory. The bytes follow one another in the order of the fragments, each at a multiple of 8.
#[repr(C)]
pub struct CodeRecord {
    /// `kind`, process and time; `length` is the number of bytes in `bytes`, `kernel` that of the fragments.
    pub header: Header,
    /// Address of the code object.
    pub code: u64,
    /// Which interpreter's: [`Entry::id`](crate::python::Entry::id).
    pub id: u32,
    /// Its check, as in samples.
    pub check: u32,
    /// Where the bytes lay.
    pub fragments: [Fragment; FRAGMENTS],
    /// The bytes.
    pub bytes: [u8; FRAGMENT_BYTES],
}

/// A stretch of memory. 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fragment {
    /// Address.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// Not used.
    pub reserved: u32,
}

/// User registers of a sample. 288 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// Program counter.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer (rbp, x29).
    pub fp: u64,
    /// Link register (x30; 0 on x86_64).
    pub lr: u64,
    /// All by DWARF number.
    pub all: [u64; REGISTERS],
}

impl Registers {
    /// All zero.
    pub const ZERO: Registers = Registers { pc: 0, sp: 0, fp: 0, lr: 0, all: [0; REGISTERS] };
}

/// Words of the thread's Python frames that a deferred sample carries at most.
pub const READS: usize = 4096;
/// Python frames of which a deferred sample carries them.
pub const DEFERRED_FRAMES: u32 = 256;

/// A word of the process's memory. 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadWord {
    /// Where it lies.
    pub address: u64,
    /// The word.
    pub value: u64,
}

/// A deferred sample as it comes through the ring buffer; `stack` is as long as `header.length` says, and `header.total`
/// [`ReadWord`]s follow it.
#[repr(C)]
pub struct Deferred {
    /// `kind`, key, time; `kernel` words are valid, `length` bytes of `stack` are.
    pub header: Header,
    /// The user registers.
    pub registers: Registers,
    /// 1: the task was in `execve`.
    pub execing: u32,
    /// 1: the copy ends for want of room; else it ends where the memory does.
    pub cut: u32,
    /// Pieces that could not be read, a bit each: pages of the stack that nobody has touched, or that are just being
    /// made. Piece 0 is what is left of the stack pointer's page.
    pub missing: u32,
    /// 1: the sampler has walked the stack itself and sends it as well; this is the evidence for it.
    pub walked: u32,
    /// x86_64: base of FS; aarch64: TPIDR_EL0; 0 where it is not needed.
    pub thread_pointer: u64,
    /// Kernel frames.
    pub words: [u64; KERNEL_WORDS + 1],
    /// Copy of the stack from `registers.sp` up.
    pub stack: [u8; COPY_BYTES],
    /// Room for what follows the stack.
    pub reads: [ReadWord; READS],
}

const _: () = {
    assert!(size_of::<CountKey>() == 32);
    assert!(size_of::<Header>() == 56 && size_of::<GivenAway>() == 72);
    assert!(size_of::<Registers>() == 288);
    assert!(WORDS.is_power_of_two() && WORDS == 2 * HEAD && COPY_BYTES.is_multiple_of(COPY_PIECE));
    assert!(COPY_BYTES / COPY_PIECE <= u32::BITS as usize);
    assert!(FRAGMENTS.is_power_of_two() && FRAGMENT_BYTES.is_power_of_two());
    assert!(COPY_BYTES.is_power_of_two() && SHORT_COPY_BYTES.is_multiple_of(COPY_PIECE));
};
