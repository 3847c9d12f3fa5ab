//! What full symbol tables say of an eval loop, read by another reader.

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use python::eval_loop::{Piece, PieceKind};

/// Padding between functions at most: they are aligned to 64 bytes at most.
const PADDING: u64 = 64;

/// Whether a file has names of functions that are not exported.
pub fn has_local(data: &[u8]) -> bool {
    object::File::parse(data).is_ok_and(|file| file.symbols().any(|symbol| symbol.kind() == SymbolKind::Text))
}

/// Functions that are named for the eval loop, and their places in the file.
fn named(data: &[u8]) -> Vec<(String, u64, u64)> {
    let is_ours = |name: &str| {
        name == "_PyEval_EvalFrameDefault"
            || name.starts_with("_PyEval_EvalFrameDefault.")
            || name.starts_with("_TAIL_CALL_")
    };
    functions(data).into_iter().filter(|(name, ..)| is_ours(name)).collect()
}

/// All functions, and their places in the file.
fn functions(data: &[u8]) -> Vec<(String, u64, u64)> {
    let file = object::File::parse(data).expect("an ELF file");
    let offset = |address: u64| {
        file.segments().find_map(|segment| {
            let within = address.checked_sub(segment.address())?;
            (within < segment.size()).then(|| segment.file_range().0 + within)
        })
    };
    let symbols = file.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    let all = symbols.filter_map(|symbol| {
        let name = symbol.name().ok()?.to_owned();
        let begin = offset(symbol.address())?;
        (symbol.size() > 0).then(|| (name, begin, begin + symbol.size()))
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, begin, _)| *begin);
    all
}

/// Every named function lies in one piece, and the pieces have nothing else but padding.
pub fn check(pieces: &[Piece], data: &[u8]) {
    let named = named(data);
    assert!(!named.is_empty());
    for (name, begin, end) in &named {
        let piece = pieces.iter().find(|piece| piece.begin <= *begin && *end <= piece.end);
        let piece = piece.unwrap_or_else(|| panic!("{name} at {begin:#x} is in no piece of {pieces:x?}"));
        if name.starts_with("_TAIL_CALL_") {
            assert_eq!(piece.kind, PieceKind::Part, "{name}");
        }
    }
    for piece in pieces {
        let mut covered = piece.begin;
        for (_, begin, end) in named.iter().filter(|(_, begin, _)| (piece.begin..piece.end).contains(begin)) {
            assert!(*begin < covered + PADDING, "{covered:#x} to {begin:#x} has no name");
            covered = covered.max(*end);
        }
        assert_eq!(covered, piece.end, "the end of {piece:x?}");
    }
}

/// The kind of the piece that a function with a name lies in.
pub fn kind_of(pieces: &[Piece], data: &[u8], wanted: &str) -> Option<PieceKind> {
    let (_, begin, _) = functions(data).into_iter().find(|(name, ..)| name == wanted)?;
    pieces.iter().find(|piece| (piece.begin..piece.end).contains(&begin)).map(|piece| piece.kind)
}
