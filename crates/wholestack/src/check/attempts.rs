//! What a recording needs, tried.

use std::io;

use recorder::probe::{self, ProbeReport, Reach};
use recorder::{BtfError, Event, LoadError, OpenError, StartError};

use crate::check::facts::Facts;

/// How the attempts went.
pub(super) struct Attempts {
    /// Loading and attaching the sampler.
    pub(super) sampler: Result<ProbeReport, StartError>,
    /// What the sampler needs and the kernel does not have.
    pub(super) missing_features: Vec<&'static str>,
    /// Opening a sampling event.
    pub(super) event: io::Result<Event>,
    /// Following processes.
    pub(super) sideband: Result<(), OpenError>,
    /// Reaching `bpf`.
    pub(super) bpf_call: Reach,
    /// Reaching `perf_event_open`.
    pub(super) perf_call: Reach,
}

impl Attempts {
    pub(super) fn make() -> Attempts {
        let sampler = probe::probe();
        Attempts {
            missing_features: if sampler.is_ok() { Vec::new() } else { probe::missing_features() },
            sampler,
            event: probe::probe_event(),
            sideband: probe::probe_sideband(),
            bpf_call: probe::probe_bpf_call(),
            perf_call: probe::probe_perf_call(),
        }
    }

    /// Whether all that a recording cannot do without was done.
    pub(super) fn recording_possible(&self, facts: &Facts) -> bool {
        self.sampler.is_ok() && self.sideband.is_ok() && facts.initial_pid_namespace == Some(true)
    }

    /// What is wrong with the kernel's type information, if that is what stopped the sampler.
    pub(super) fn btf_error(&self) -> Option<&BtfError> {
        match &self.sampler {
            Err(StartError::Load(LoadError::Btf(error))) => Some(error),
            _ => None,
        }
    }
}
