//! Reading the counts maps: one is written by the sampler while the other is emptied.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use abi::record::CountKey;
use aya::maps::MapData;

use crate::arena::grace_period;
use crate::mapped::Mapped;

/// `BPF_MAP_LOOKUP_AND_DELETE_BATCH` of include/uapi/linux/bpf.h.
const LOOKUP_AND_DELETE_BATCH: libc::c_long = 25;
/// Elements asked for at a time, at first.
const BATCH: usize = 4096;

/// `union bpf_attr`, the part of the batch commands. 56 bytes.
#[repr(C)]
#[derive(Default)]
struct BatchAttributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// The two counts maps and the switch between them.
pub(crate) struct Counts {
    maps: [MapData; 2],
    control: Mapped<u32>,
    epoch: u32,
    keys: Vec<CountKey>,
    values: Vec<u64>,
}

impl Counts {
    /// `control` is the map of `Control`, whose first word is the epoch.
    pub(crate) fn new(maps: [MapData; 2], control: &MapData) -> io::Result<Counts> {
        let control = Mapped::new(control, 1)?;
        Ok(Counts { maps, control, epoch: 0, keys: vec![CountKey::default(); BATCH], values: vec![0; BATCH] })
    }

    /// Lets the sampler write the other map. Every stack that is counted in the one written until now was sent to the
    /// ring buffer before this returns.
    pub(crate) fn switch(&mut self) {
        self.epoch ^= 1;
        let switched = self.control.write(0, &[self.epoch]);
        debug_assert!(switched, "one element");
        Mapped::<u32>::publish();
        // a program that read the old epoch may still be adding to its map
        grace_period();
    }

    /// Empties the map that is not written.
    pub(crate) fn empty(&mut self, each: &mut impl FnMut(&CountKey, u64)) -> io::Result<()> {
        let map = self.epoch as usize ^ 1;
        let fd = self.maps[map].fd().as_fd().as_raw_fd() as u32;
        let mut batch_token = 0u32;
        let mut started = false;
        loop {
            let room = self.keys.len();
            let token = &raw mut batch_token as u64;
            let mut attributes = BatchAttributes {
                in_batch: if started { token } else { 0 },
                out_batch: token,
                keys: self.keys.as_mut_ptr() as u64,
                values: self.values.as_mut_ptr() as u64,
                count: room as u32,
                map_fd: fd,
                ..BatchAttributes::default()
            };
            // SAFETY: keys and values have room for `count` elements of the map's sizes; the token of a hash map is
            // 4 bytes; all outlive the call.
            let result = unsafe {
                libc::syscall(libc::SYS_bpf, LOOKUP_AND_DELETE_BATCH, &raw mut attributes, size_of::<BatchAttributes>())
            };
            let error = io::Error::last_os_error();
            let got = (attributes.count as usize).min(room);
            match (result, error.raw_os_error()) {
                (0, _) | (_, Some(libc::ENOENT)) => {
                    self.keys[..got].iter().zip(&self.values[..got]).for_each(|(key, count)| each(key, *count));
                }
                // a bucket of the hash has more elements than there is room for
                (_, Some(libc::ENOSPC)) if room < BATCH << 8 => {
                    self.keys.resize(room * 2, CountKey::default());
                    self.values.resize(room * 2, 0);
                    continue;
                }
                _ => return Err(error),
            }
            if result != 0 {
                return Ok(());
            }
            started = true;
        }
    }
}
