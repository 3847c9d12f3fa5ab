//! What a profile says, taken from the model without the code of any format.

use std::collections::BTreeMap;

use profile::{FrameId, Profile, Sample};

/// Names of process and thread (both, even if they are alike) and of frames, outermost first, with their counts.
pub type Stacks = BTreeMap<(String, String, Vec<String>), u64>;

/// The stacks of a profile with a name of one's choice for each frame.
pub fn stacks(profile: &Profile, name: impl Fn(FrameId) -> String) -> Stacks {
    let mut stacks = Stacks::new();
    for sample in &profile.samples {
        let (process, thread) = tasks(profile, sample);
        let mut frames: Vec<String> = profile.frames_of(sample.stack).map(&name).collect();
        frames.reverse();
        *stacks.entry((process, thread, frames)).or_default() += sample.count;
    }
    stacks
}

/// Names of the process and the thread of a sample.
pub fn tasks(profile: &Profile, sample: &Sample) -> (String, String) {
    let thread = &profile.threads[sample.thread.index()];
    let process = &profile.processes[thread.process.index()];
    (profile.text(process.name).to_owned(), profile.text(thread.name).to_owned())
}

/// The name of a frame's function.
pub fn name(profile: &Profile, frame: FrameId) -> String {
    profile.text(profile.function_of(frame).name).to_owned()
}
