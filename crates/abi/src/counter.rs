//! What the sampler counts about itself.
//!
//! Every time the sampler runs, exactly one of the *outcomes* goes up, so that
//! `SAMPLES = IDLE + FILTERED + COUNTED + DEFERRED + the losses`, and user space checks the sum at the end.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Index in the counters map.
        #[repr(u32)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Counter {
            $($(#[$doc])* $name = $code,)*
        }

        impl Counter {
            /// All of them; the position is the index.
            pub const ALL: &'static [Counter] = &[$(Counter::$name),*];

            /// What a user reads.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Counter::$name => $text,)*
                }
            }
        }
    };
}

counters! {
    /// The sampler ran.
    Samples = 0, "samples taken";
    /// Outcome: the CPU was idle.
    Idle = 1, "CPU idle";
    /// Outcome: a process that was not asked for.
    Filtered = 2, "other processes";
    /// Outcome: an increment in the counts map.
    Counted = 3, "counted";
    /// Outcome: sent to user space to be walked there.
    Deferred = 4, "walked in user space";
    /// Loss: a new stack found no room in the ring buffer.
    LostStack = 5, "lost: ring buffer full";
    /// Loss: a deferred sample found no room in the ring buffer.
    LostDeferred = 6, "lost: ring buffer full (deferred sample)";
    /// Loss: the counts map was full.
    LostCount = 7, "lost: counts map full";
    /// Loss: the per-CPU scratch memory was in use (a sample within a sample) or missing.
    LostScratch = 8, "lost: no scratch memory";
    /// Not an outcome: a forked child could not be added to the followed processes.
    LostFork = 9, "children not followed: map full";
}

impl Counter {
    /// Outcomes that mean a lost sample.
    pub const LOSSES: &'static [Counter] =
        &[Counter::LostStack, Counter::LostDeferred, Counter::LostCount, Counter::LostScratch];
    /// Entries of the counters map.
    pub const COUNT: usize = Counter::ALL.len();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_index() {
        for (index, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, index);
        }
    }
}
