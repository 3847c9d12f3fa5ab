//! The profile's prefix tree as the page needs it: only what differs in the picture stays apart.

use profile::{FrameKey, FunctionId, NodeId, Profile};
use rustc_hash::FxHashMap;

/// A frame without what the page does not show: addresses, and how it was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct PageFrame {
    /// Its function.
    pub(super) function: FunctionId,
    /// Source line; 0 = not known.
    pub(super) line: u32,
    /// Whether it was inlined into its caller.
    pub(super) inlined: bool,
}

impl From<&FrameKey> for PageFrame {
    fn from(key: &FrameKey) -> PageFrame {
        PageFrame { function: key.function, line: key.line, inlined: key.inlined }
    }
}

/// A node of the page's tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageNode {
    /// Levels below the outermost frames.
    pub(super) depth: u32,
    /// Position in [`PageTree::frames`].
    pub(super) frame: u32,
}

/// Frames and nodes that samples use; nodes come depth first, a parent right before its first child.
#[derive(Debug, Default)]
pub(super) struct PageTree {
    /// Frames; those of many nodes come first, because small numbers are short.
    pub(super) frames: Vec<PageFrame>,
    /// The nodes.
    pub(super) nodes: Vec<PageNode>,
    /// Position in `nodes` of each node of the profile; `u32::MAX` for those that no sample uses.
    places: Vec<u32>,
}

/// A node while the tree is made.
struct Merged {
    parent: u32,
    frame: u32,
}

/// Stands for no node.
const NONE: u32 = u32::MAX;

impl PageTree {
    /// Makes the tree of a profile.
    pub(super) fn new(profile: &Profile) -> PageTree {
        let (frames, frame_numbers) = merge_frames(profile);
        let (merged, merged_numbers) = merge_nodes(profile, &frame_numbers);
        let (frames, merged) = number_by_frequency(frames, merged);
        let (nodes, order) = depth_first(&merged);
        let places = merged_numbers.iter().map(|&n| if n == NONE { NONE } else { order[n as usize] }).collect();
        PageTree { frames, nodes, places }
    }

    /// Position of a node of the profile in `nodes`; it must be one that a sample uses.
    pub(super) fn place(&self, node: NodeId) -> u32 {
        self.places[node.index()]
    }
}

/// The page's frames, and the number among them of each frame of the profile.
fn merge_frames(profile: &Profile) -> (Vec<PageFrame>, Vec<u32>) {
    let mut frames = Vec::new();
    let mut known = FxHashMap::default();
    let mut number = |key: &FrameKey| {
        let frame = PageFrame::from(key);
        *known.entry(frame).or_insert_with(|| {
            frames.push(frame);
            frames.len() as u32 - 1
        })
    };
    let numbers = profile.frames.iter().map(&mut number).collect();
    (frames, numbers)
}

/// The used nodes with equal ones merged, parents first, and the number among them of each node of the profile.
fn merge_nodes(profile: &Profile, frame_numbers: &[u32]) -> (Vec<Merged>, Vec<u32>) {
    let used = used_nodes(profile);
    let mut merged = Vec::new();
    let mut known = FxHashMap::default();
    let mut numbers = vec![NONE; profile.nodes.len()];
    for (index, node) in profile.nodes.iter().enumerate().filter(|(index, _)| used[*index]) {
        let parent = node.parent.map_or(NONE, |parent| numbers[parent.index()]);
        let frame = frame_numbers[node.frame.index()];
        numbers[index] = *known.entry((parent, frame)).or_insert_with(|| {
            merged.push(Merged { parent, frame });
            merged.len() as u32 - 1
        });
    }
    (merged, numbers)
}

/// Which nodes are part of a sample's stack.
fn used_nodes(profile: &Profile) -> Vec<bool> {
    let mut used = vec![false; profile.nodes.len()];
    for stack in profile.samples.iter().filter_map(|sample| sample.stack) {
        used[stack.index()] = true;
    }
    for (index, node) in profile.nodes.iter().enumerate().rev() {
        if let (true, Some(parent)) = (used[index], node.parent) {
            used[parent.index()] = true;
        }
    }
    used
}

/// Drops frames without nodes and numbers the others by falling number of nodes.
fn number_by_frequency(frames: Vec<PageFrame>, mut nodes: Vec<Merged>) -> (Vec<PageFrame>, Vec<Merged>) {
    let mut counts = vec![0u32; frames.len()];
    for node in &nodes {
        counts[node.frame as usize] += 1;
    }
    let mut order: Vec<u32> = (0..frames.len() as u32).filter(|&frame| counts[frame as usize] > 0).collect();
    order.sort_by_key(|&frame| std::cmp::Reverse(counts[frame as usize]));
    let mut numbers = vec![NONE; frames.len()];
    for (number, &frame) in order.iter().enumerate() {
        numbers[frame as usize] = number as u32;
    }
    for node in &mut nodes {
        node.frame = numbers[node.frame as usize];
    }
    (order.into_iter().map(|frame| frames[frame as usize]).collect(), nodes)
}

/// The nodes depth first, siblings by their frames' numbers; and the position of each.
fn depth_first(merged: &[Merged]) -> (Vec<PageNode>, Vec<u32>) {
    // pushed last, taken first: siblings go on the stack by falling frame number
    let mut by_parent: Vec<u32> = (0..merged.len() as u32).collect();
    by_parent.sort_unstable_by_key(|&node| {
        let Merged { parent, frame } = merged[node as usize];
        (parent, std::cmp::Reverse(frame))
    });
    let mut children = vec![0..0; merged.len()];
    let mut outermost = 0..0;
    let mut end = 0;
    for run in by_parent.chunk_by(|&a, &b| merged[a as usize].parent == merged[b as usize].parent) {
        let range = end..end + run.len();
        end = range.end;
        match merged[run[0] as usize].parent {
            NONE => outermost = range,
            parent => children[parent as usize] = range,
        }
    }
    let mut nodes = Vec::with_capacity(merged.len());
    let mut order = vec![NONE; merged.len()];
    let mut stack: Vec<(u32, u32)> = by_parent[outermost].iter().map(|&node| (node, 0)).collect();
    while let Some((node, depth)) = stack.pop() {
        order[node as usize] = nodes.len() as u32;
        nodes.push(PageNode { depth, frame: merged[node as usize].frame });
        stack.extend(by_parent[children[node as usize].clone()].iter().map(|&child| (child, depth + 1)));
    }
    (nodes, order)
}
