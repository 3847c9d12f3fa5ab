//! A gzipped protocol buffer for [pprof](https://github.com/google/pprof), by its `proto/profile.proto`.
//!
//! # Values
//! Each sample has `samples`/count and, where the frequency is known, `cpu`/nanoseconds: the count times
//! 10⁹ / frequency. Labels: `pid` and `tid` (numbers), `process` and `thread` (names).
//!
//! # Addresses
//! A profile of many processes has no one address space, so it gets one that is made up. The module that is number
//! n (from 1) owns the 2⁴⁰ bytes from n·2⁴⁰, and the byte at offset x of its file stands at n·2⁴⁰ + x: the low 40
//! bits of an address are the offset in the file. Its mapping covers the pages from the lowest to the highest
//! offset that occurs; it does not begin at offset 0, because pprof finds the ELF segment by the mapping's offset.
//! So `pprof -disasm` finds its instructions in the file. (The pprof of the Go distribution, `go tool pprof`, does so
//! only if the first of these pages is that of the first executable segment, for it takes it for that.)
//!
//! Modules that are no files (the kernel, whose mapping is `[kernel.kallsyms]`, and others in brackets) keep their
//! addresses. Code without a module keeps its address and has no mapping. What cannot be placed so, markers and Python
//! functions among it, has address 0.
//!
//! # Locations
//! A function and what was inlined into it are lines of one location, the innermost first. Markers are functions
//! with their brackets.
//!
//! A Python function has its file and its first line, its location the current line: `-list` shows them in the source. It is
//! called `qualname (file.py)`, because reports add up functions of one name unless `-filefunctions` or `-lines` is asked for. It
//! has no system name: one that is equal to the name is taken for one that may be mangled, and pprof makes nothing at all of
//! `<module>` and `<lambda>` then.
//!
//! # Comments
//! What is to be known of the recording, what was lost, and how the stacks ended; `go tool pprof -comments` shows
//! them. Those on single interpreters and processes begin with `#`, which keeps them out of the heads of reports.

mod locations;
mod mappings;
pub mod messages;
mod strings;

use std::io::{BufWriter, Write};
use std::time::{Duration, UNIX_EPOCH};

use flate2::{Compression, write::GzEncoder};
use profile::{Meta, Profile as Model, Sample as ModelSample};
use prost::Message as _;

use crate::{Error, comments};
use locations::Locations;
use messages::{Label, Profile, Sample, ValueType};
use strings::Strings;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Writes the profile.
pub fn write(profile: &Model, out: &mut dyn Write) -> Result<(), Error> {
    let mut out = BufWriter::with_capacity(64 * 1024, GzEncoder::new(out, Compression::default()));
    let mut strings = Strings::default();
    let mut locations = Locations::new(profile, &mut strings);
    let keys = Keys::new(&mut strings);
    // messages that are written behind one another merge: so the samples need not be in memory together
    for sample in profile.samples.iter().filter(|sample| sample.count > 0) {
        let sample = convert(profile, sample, &keys, &mut locations, &mut strings);
        write_part(&Profile { sample: vec![sample], ..Profile::default() }, &mut out)?;
    }
    let mut rest = about(profile, &mut strings);
    (rest.mapping, rest.location, rest.function) = locations.finish();
    rest.string_table = strings.finish();
    write_part(&rest, &mut out)?;
    out.into_inner().map_err(|error| error.into_error())?.finish()?.flush()?;
    Ok(())
}

fn write_part(part: &Profile, out: &mut impl Write) -> Result<(), Error> {
    Ok(out.write_all(&part.encode_to_vec())?)
}

/// Names of labels.
struct Keys {
    pid: i64,
    tid: i64,
    process: i64,
    thread: i64,
}

impl Keys {
    fn new(strings: &mut Strings) -> Keys {
        let mut id = |name| strings.id(name);
        Keys { pid: id("pid"), tid: id("tid"), process: id("process"), thread: id("thread") }
    }
}

fn convert(
    profile: &Model,
    sample: &ModelSample,
    keys: &Keys,
    locations: &mut Locations<'_>,
    strings: &mut Strings,
) -> Sample {
    let thread = &profile.threads[sample.thread.index()];
    let process = &profile.processes[thread.process.index()];
    let number = |key, num: u32| Label { key, num: num.into(), ..Label::default() };
    let mut text = |key, text| Label { key, str: strings.visible(profile.text(text)), ..Label::default() };
    let label = vec![
        number(keys.pid, process.pid),
        number(keys.tid, thread.tid),
        text(keys.process, process.name),
        text(keys.thread, thread.name),
    ];
    Sample {
        location_id: locations.of_stack(sample.stack, strings),
        value: values(sample.count, profile.meta.frequency),
        label,
    }
}

/// The values of a sample, in the order of [`about`]'s types.
fn values(count: u64, frequency: u32) -> Vec<i64> {
    let nanos = (u128::from(count) * NANOS_PER_SECOND).checked_div(frequency.into());
    std::iter::once(count.into()).chain(nanos).map(|value: u128| value.try_into().unwrap_or(i64::MAX)).collect()
}

/// Everything but samples and what they refer to.
fn about(profile: &Model, strings: &mut Strings) -> Profile {
    let meta = &profile.meta;
    let samples = ValueType { r#type: strings.id("samples"), unit: strings.id("count") };
    let cpu = ValueType { r#type: strings.id("cpu"), unit: strings.id("nanoseconds") };
    let known = meta.frequency != 0;
    Profile {
        sample_type: if known { vec![samples, cpu] } else { vec![samples] },
        period_type: Some(if known { cpu } else { samples }),
        period: NANOS_PER_SECOND.checked_div(meta.frequency.into()).map_or(1, |period| period as i64),
        time_nanos: start_nanos(meta),
        duration_nanos: nanos(meta.duration),
        comment: comments(meta).iter().map(|comment| strings.visible(comment)).collect(),
        ..Profile::default()
    }
}

fn comments(meta: &Meta) -> Vec<String> {
    let processes = comments::of_processes(meta).into_iter().map(|comment| format!("# {comment}"));
    comments::of_recording(meta).into_iter().chain(processes).collect()
}

fn start_nanos(meta: &Meta) -> i64 {
    match meta.start.duration_since(UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(error) => -nanos(error.duration()),
    }
}

fn nanos(duration: Duration) -> i64 {
    duration.as_nanos().try_into().unwrap_or(i64::MAX)
}
