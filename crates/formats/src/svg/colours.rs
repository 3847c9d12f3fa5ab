//! A colour for each kind of box, and shades of it by the name.

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};

use super::placeholders;
use crate::tree::{ROOT, Tree};

/// Behind the boxes.
pub(super) const BACKGROUND: BackgroundColor = BackgroundColor::Flat(rgb(248, 248, 248));
/// How much darker than its base a shade can be.
const DEPTH: u32 = 36;

/// What a box is, as far as colours tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Shade {
    Kernel,
    Native,
    Inlined,
    Jit,
    Python,
    Marker,
    Task,
}

impl Shade {
    /// In the order of the legend.
    pub(super) const ALL: &'static [Shade] =
        &[Shade::Kernel, Shade::Native, Shade::Inlined, Shade::Jit, Shade::Python, Shade::Marker, Shade::Task];

    fn name(self) -> &'static str {
        match self {
            Shade::Kernel => "kernel",
            Shade::Native => "native",
            Shade::Inlined => "inlined",
            Shade::Jit => "jit",
            Shade::Python => "python",
            Shade::Marker => "marker",
            Shade::Task => "process/thread",
        }
    }

    /// The entry of the legend, its square as a stand-in.
    pub(super) fn legend(self) -> String {
        format!("{} {}", placeholders::square(self), self.name())
    }

    /// The end of its labels. Inferno takes these ends off before it shows a label; `w` is one that it knows and
    /// that nothing else here uses. It knows no more, so Python's is a stand-in for nothing.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Shade::Kernel => "_[k]",
            Shade::Inlined => "_[i]",
            Shade::Jit => "_[j]",
            Shade::Task => "_[w]",
            Shade::Python => placeholders::NOTHING,
            Shade::Native | Shade::Marker => "",
        }
    }

    /// What the end and the beginning of a label say.
    fn of(label: &str) -> Shade {
        let suffixed = [Shade::Kernel, Shade::Inlined, Shade::Jit, Shade::Python, Shade::Task];
        match suffixed.into_iter().find(|shade| label.ends_with(shade.suffix())) {
            Some(shade) => shade,
            None if label.starts_with(placeholders::of('[')) => Shade::Marker,
            None => Shade::Native,
        }
    }
}

const fn rgb(r: u8, g: u8, b: u8) -> Color {
    Color { r, g, b }
}

/// The colour of a kind.
pub(super) fn base(shade: Shade) -> Color {
    match shade {
        Shade::Kernel => rgb(238, 128, 92),
        Shade::Native => rgb(246, 198, 86),
        Shade::Inlined => rgb(250, 232, 164),
        Shade::Jit => rgb(142, 208, 122),
        Shade::Python => rgb(198, 150, 240),
        Shade::Marker => rgb(196, 196, 196),
        Shade::Task => rgb(172, 198, 230),
    }
}

/// Whether any box has this colour.
pub(super) fn occurs(shade: Shade, tree: &Tree) -> bool {
    tree.nodes.iter().skip(ROOT + 1).any(|node| Shade::of(&tree.labels[node.label]) == shade)
}

/// The colour of every label.
pub(super) fn palette(tree: &Tree) -> PaletteMap {
    let mut map = PaletteMap::default();
    for label in &tree.labels {
        map.insert(label, shaded(base(Shade::of(label)), label));
    }
    map.insert(super::lines::TOO_NARROW, base(Shade::Marker));
    // the box of everything has no label
    map.insert("", base(Shade::Marker));
    map
}

/// Neighbours of one kind get different shades, a function the same one in every picture.
fn shaded(base: Color, label: &str) -> Color {
    // FNV-1a
    let hash = label.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // its last bytes reach only the low bits: multiplied once more, they reach the high ones
    let darker = (hash.wrapping_mul(0x9e37_79b1) >> 16) % DEPTH;
    let darken = |channel: u8| (u32::from(channel) * (255 - darker) / 255) as u8;
    rgb(darken(base.r), darken(base.g), darken(base.b))
}
