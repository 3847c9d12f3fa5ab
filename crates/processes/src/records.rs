//! Decoder of the perf records that tell of processes and mappings.
//!
//! Layouts: `enum perf_event_type` in the kernel's `include/uapi/linux/perf_event.h`. All numbers are in the
//! machine's byte order. Every record ends in the trailer that `sample_id_all` asks for.

use perf_event_open_sys::bindings as sys;

use crate::range::normalize;
use crate::{BuildId, Comm, FileIdentity, MappedRange};

/// An event and when and where it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimedEvent {
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub time: u64,
    /// The CPU.
    pub cpu: u32,
    /// What happened.
    pub event: Event,
}

/// What happened to a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Memory was mapped, or made executable.
    Map(MapEvent),
    /// A thread got a name.
    Comm {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// The name.
        comm: Comm,
        /// By exec: all that was mapped is gone, and all other threads. Else by prctl or through /proc.
        exec: bool,
    },
    /// A thread (`pid == ppid`) or a process was made.
    Fork {
        /// The new process, or that of the new thread.
        pid: u32,
        /// The process that made it.
        ppid: u32,
        /// The new thread.
        tid: u32,
        /// The thread that made it.
        ptid: u32,
    },
    /// A thread ended.
    Exit {
        /// Its process.
        pid: u32,
        /// The parent of that process.
        ppid: u32,
        /// The thread.
        tid: u32,
        /// The parent's thread.
        ptid: u32,
    },
    /// Records were lost: what is known may be wrong until all is read again.
    Lost {
        /// How many.
        count: u64,
    },
}

/// Memory was mapped, or made executable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapEvent {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Where and what.
    pub range: MappedRange,
}

/// Why a record could not be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// It ends before its fields do.
    #[error("perf record of type {kind} is too short")]
    TooShort {
        /// Type of the record; 0 if not even that is there.
        kind: u32,
    },
    /// The size in its header is not its size.
    #[error("perf record says {said} bytes and has {found}")]
    Size {
        /// In the header.
        said: usize,
        /// What there is.
        found: usize,
    },
    /// A mapping that is empty or goes beyond the end of the address space.
    #[error("perf record of a mapping of {length:#x} bytes at {start:#x}")]
    Range {
        /// First address.
        start: u64,
        /// Bytes.
        length: u64,
    },
}

/// What the events must ask for so that the trailer is the one that [`decode`] expects.
pub(crate) const SAMPLE_TYPE: u64 = (sys::PERF_SAMPLE_TID | sys::PERF_SAMPLE_TIME | sys::PERF_SAMPLE_CPU) as u64;
/// Bytes of a record's header: type, flags, size.
pub(crate) const HEADER: usize = 8;
/// Bytes of the trailer: pid, tid, time, cpu, reserved.
const TRAILER: usize = 24;

/// Decodes one whole record, header and trailer included. `None` for types that say nothing of processes.
///
/// # Errors
/// A record that no kernel writes.
pub fn decode(record: &[u8]) -> Result<Option<TimedEvent>, RecordError> {
    let mut header = Fields { rest: record, kind: 0 };
    let kind = header.u32()?;
    header.kind = kind;
    let flags = u32::from(header.u16()?);
    let said = usize::from(header.u16()?);
    if said != record.len() {
        return Err(RecordError::Size { said, found: record.len() });
    }
    let body_end = header.rest.len().checked_sub(TRAILER).ok_or(RecordError::TooShort { kind })?;
    let (body, trailer) = header.rest.split_at(body_end);
    let fields = Fields { rest: body, kind };
    let event = match kind {
        sys::PERF_RECORD_MMAP2 => Event::Map(map(fields, flags)?),
        sys::PERF_RECORD_COMM => comm(fields, flags)?,
        sys::PERF_RECORD_FORK => task(fields).map(|(pid, ppid, tid, ptid)| Event::Fork { pid, ppid, tid, ptid })?,
        sys::PERF_RECORD_EXIT => task(fields).map(|(pid, ppid, tid, ptid)| Event::Exit { pid, ppid, tid, ptid })?,
        sys::PERF_RECORD_LOST => lost(fields)?,
        _ => return Ok(None),
    };
    let mut trailer = Fields { rest: trailer, kind };
    trailer.skip(8)?;
    Ok(Some(TimedEvent { time: trailer.u64()?, cpu: trailer.u32()?, event }))
}

/// `PERF_RECORD_MMAP2`.
fn map(mut fields: Fields<'_>, flags: u32) -> Result<MapEvent, RecordError> {
    let (pid, tid) = (fields.u32()?, fields.u32()?);
    let (start, length, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mut file = Fields { rest: fields.take(24)?, kind: fields.kind };
    let identity = match flags & sys::PERF_RECORD_MISC_MMAP_BUILD_ID != 0 {
        true => build_id(&mut file)?,
        false => inode(&mut file)?,
    };
    let protection = fields.u32()?;
    fields.skip(4)?;
    let path = until_nul(fields.rest);
    let end = start.checked_add(length).filter(|end| *end > start).ok_or(RecordError::Range { start, length })?;
    let (path, file_offset, identity) = normalize(path, file_offset, identity);
    let executable = protection & libc::PROT_EXEC as u32 != 0;
    let readable = protection & libc::PROT_READ as u32 != 0;
    let range = MappedRange { start, end, file_offset, executable, readable, identity, path };
    Ok(MapEvent { pid, tid, range })
}

/// The form with a build-id: size, three reserved bytes, 20 bytes.
fn build_id(file: &mut Fields<'_>) -> Result<FileIdentity, RecordError> {
    let size = usize::from(file.u8()?);
    file.skip(3)?;
    let bytes = file.take(BuildId::MAX)?;
    Ok(bytes.get(..size).and_then(BuildId::new).map_or(FileIdentity::None, FileIdentity::BuildId))
}

/// The form with a device and an inode; all zero for memory without a file.
fn inode(file: &mut Fields<'_>) -> Result<FileIdentity, RecordError> {
    let (major, minor) = (file.u32()?, file.u32()?);
    let (inode, generation) = (file.u64()?, file.u64()?);
    match inode {
        0 => Ok(FileIdentity::None),
        _ => Ok(FileIdentity::Inode { major, minor, inode, generation }),
    }
}

/// `PERF_RECORD_COMM`.
fn comm(mut fields: Fields<'_>, flags: u32) -> Result<Event, RecordError> {
    let (pid, tid) = (fields.u32()?, fields.u32()?);
    let comm = Comm::new(fields.rest);
    Ok(Event::Comm { pid, tid, comm, exec: flags & sys::PERF_RECORD_MISC_COMM_EXEC != 0 })
}

/// `PERF_RECORD_FORK` and `PERF_RECORD_EXIT`: pid, ppid, tid, ptid, time.
fn task(mut fields: Fields<'_>) -> Result<(u32, u32, u32, u32), RecordError> {
    let ids = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
    fields.skip(8)?;
    Ok(ids)
}

/// `PERF_RECORD_LOST`: id, count.
fn lost(mut fields: Fields<'_>) -> Result<Event, RecordError> {
    fields.skip(8)?;
    Ok(Event::Lost { count: fields.u64()? })
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..length]
}

/// Takes numbers from the front of some bytes.
struct Fields<'a> {
    rest: &'a [u8],
    kind: u32,
}

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(RecordError::TooShort { kind: self.kind })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(RecordError::TooShort { kind: self.kind })?;
        self.rest = rest;
        Ok(*taken)
    }

    fn skip(&mut self, count: usize) -> Result<(), RecordError> {
        self.take(count).map(drop)
    }

    fn u8(&mut self) -> Result<u8, RecordError> {
        self.array().map(u8::from_ne_bytes)
    }

    fn u16(&mut self) -> Result<u16, RecordError> {
        self.array().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Result<u32, RecordError> {
        self.array().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Result<u64, RecordError> {
        self.array().map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests;
