//! The lines that inferno draws.
//!
//! A line repeats all names of its stack, and a deep stack of long names times many stacks is more than a machine
//! has memory. So branches that would be too narrow to see are left out first, and if the lines would still be
//! too long, so are wider ones.

use profile::{FrameId, Kind, Profile};

use super::colours::Shade;
use super::placeholders;
use crate::escape;
use crate::tree::{Labels, ROOT, Tree};

/// The part of the whole that a box must have to be drawn is one in so many.
const PARTS: u128 = 10_000;
/// Bytes that all lines together may have.
const BYTES: u128 = 128 << 20;
/// Bits of a number that the picture's script reads exactly.
const EXACT_BITS: u32 = 53;
/// What stands for processes that are left out.
pub(super) const TOO_NARROW: &str = "(too narrow to draw)";

/// Lines in the order of their boxes.
pub(super) struct Lines {
    lines: Vec<String>,
    total: u128,
    shift: u32,
}

impl Lines {
    /// The lines of a tree.
    pub(super) fn new(tree: &Tree) -> Lines {
        Lines::within(tree, BYTES)
    }

    fn within(tree: &Tree, bytes: u128) -> Lines {
        let total = tree.nodes[ROOT].total;
        let shift = (u128::BITS - total.leading_zeros()).saturating_sub(EXACT_BITS);
        let mut least = total.div_ceil(PARTS);
        while length(tree, least) > bytes && least <= total {
            least *= 2;
        }
        let mut lines = Vec::new();
        walk(tree, least, |line| {
            let count = line.count >> shift;
            if count > 0 {
                lines.push(format!("{} {count}", labels(tree, line.stack)));
            }
        });
        Lines { lines, total, shift }
    }

    /// Whether there is nothing to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Samples of all lines.
    pub(super) fn total(&self) -> u128 {
        self.total
    }

    /// What a count in a line is to be multiplied with.
    pub(super) fn factor(&self) -> f64 {
        2_f64.powi(self.shift as i32)
    }

    /// The lines, those of the rightmost boxes first.
    pub(super) fn last_first(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().rev().map(String::as_str)
    }
}

fn labels(tree: &Tree, stack: &[usize]) -> String {
    if stack.is_empty() {
        return TOO_NARROW.to_owned();
    }
    stack.iter().map(|node| tree.label(*node)).collect::<Vec<_>>().join(";")
}

/// Bytes of all lines, without their counts.
fn length(tree: &Tree, least: u128) -> u128 {
    let mut sum = 0;
    walk(tree, least, |line| sum += line.bytes);
    sum
}

/// A line.
struct Line<'a> {
    /// Nodes, the outermost first.
    stack: &'a [usize],
    /// Bytes of their labels, each with a separator.
    bytes: u128,
    /// Samples that end there, and those of the branches above that are left out.
    count: u128,
}

/// Calls `line` for each line that is drawn if nodes of fewer samples than `least` are left out.
fn walk(tree: &Tree, least: u128, mut line: impl FnMut(&Line)) {
    let drawn = |node: &usize| tree.nodes[*node].total >= least;
    let rest = |node: usize| {
        let children = tree.nodes[node].children.iter().filter(|child| drawn(child));
        tree.nodes[node].total - children.map(|child| tree.nodes[*child].total).sum::<u128>()
    };
    let mut stack = Vec::new();
    // (depth, bytes of the labels before it, node), next one last
    let mut open = vec![(0, 0, ROOT)];
    while let Some((depth, before, node)) = open.pop() {
        stack.truncate(depth);
        let mut bytes = before;
        if node != ROOT {
            stack.push(node);
            bytes += tree.label(node).len() as u128 + 1;
        }
        let count = rest(node);
        if count > 0 {
            line(&Line { stack: &stack, bytes, count });
        }
        let children = tree.nodes[node].children.iter().rev().filter(|child| drawn(child));
        open.extend(children.map(|child| (stack.len(), bytes, *child)));
    }
}

/// Labels that inferno passes through.
pub(super) struct SvgLabels<'a>(pub(super) &'a Profile);

impl Labels for SvgLabels<'_> {
    fn task(&self, name: &str) -> String {
        label(name, Shade::Task)
    }

    fn frame(&self, frame: FrameId) -> String {
        let shade = match self.0.function_of(frame).kind {
            Kind::Kernel => Shade::Kernel,
            Kind::Marker => Shade::Marker,
            _ if self.0.frames[frame.index()].inlined => Shade::Inlined,
            Kind::Native => Shade::Native,
            Kind::Jit => Shade::Jit,
            Kind::Python => Shade::Python,
        };
        label(&self.0.label(frame, self.0.meta.lines), shade)
    }
}

fn label(name: &str, shade: Shade) -> String {
    let name = escape::visible(if name.is_empty() { "(no name)" } else { name });
    // only blanks that would be trimmed or taken for the one before the count need a stand-in
    let blanks = name.trim_matches(' ') != name || name.starts_with("# ") || escape::innermost(&name) != name;
    let last = name.len() - 1;
    let mut label: String = name
        .char_indices()
        .map(|(at, c)| match c {
            ';' => placeholders::of(c),
            ' ' if blanks => placeholders::of(c),
            '[' if at == 0 && shade == Shade::Marker => placeholders::of(c),
            ']' if at == last => placeholders::of(c),
            c => c,
        })
        .collect();
    label.push_str(shade.suffix());
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Builder, FrameKey, FunctionKey};

    /// Sixty stacks, each of the frames of the one before and one more.
    fn deep() -> Tree {
        let mut builder = Builder::default();
        let process = builder.process(1, "p");
        let thread = builder.thread(process, 1, "p");
        let mut stack = None;
        for depth in 0..60 {
            let name = builder.text(&format!("frame {depth} with a name"));
            let kind = Kind::Native;
            let function = builder.function(FunctionKey { name, kind, file: None, start_line: 0, module: None });
            let frame = builder.frame(FrameKey::of(function));
            stack = Some(builder.push(stack, frame));
            builder.add(thread, stack, 100);
        }
        let profile = builder.finish();
        Tree::new(&profile, &SvgLabels(&profile))
    }

    /// Samples of all lines, and their bytes without the counts.
    fn sums(lines: &Lines) -> (u64, usize) {
        let parts = lines.lines.iter().filter_map(|line| line.rsplit_once(' '));
        parts.fold((0, 0), |(samples, bytes), (stack, count)| {
            (samples + count.parse::<u64>().unwrap_or_default(), bytes + stack.len() + 1)
        })
    }

    #[test]
    fn lines_that_would_be_too_long_are_cut_and_lose_no_sample() {
        let tree = deep();
        let whole = Lines::within(&tree, 1 << 20);
        assert_eq!(whole.lines.len(), 60);
        assert_eq!(sums(&whole), (6_000, length(&tree, 0) as usize));
        let cut = Lines::within(&tree, 8_000);
        assert!((2..60).contains(&cut.lines.len()));
        let (samples, bytes) = sums(&cut);
        assert!(samples == 6_000 && bytes <= 8_000, "{samples} {bytes}");
        assert_eq!(Lines::within(&tree, 1).lines, [format!("{TOO_NARROW} 6000")]);
    }
}
