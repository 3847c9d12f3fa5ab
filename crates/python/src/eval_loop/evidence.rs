//! What is said of an eval loop, found or not: the step that recordings need beside the proof.

use super::names::EVAL_LOOP;
use super::{EvalLoop, EvalLoopRefusal, Piece, PieceKind};
use crate::Noted;
use crate::refusal::Step;

/// Pieces that are listed. Few files have more, and those have hundreds.
const LISTED: usize = 8;

impl EvalLoop {
    /// What was found.
    pub fn noted(&self) -> Noted {
        let count = self.pieces.len();
        let bytes = self.pieces.iter().map(|piece| piece.end.saturating_sub(piece.begin)).sum();
        let noun = if count == 1 { "piece" } else { "pieces" };
        let mut evidence = vec![format!("{EVAL_LOOP} at {:#x} of the file's addresses", self.address)];
        evidence.extend(self.pieces.iter().take(LISTED).map(described));
        if count > LISTED {
            evidence.push(format!("and {} more", count - LISTED));
        }
        Noted { step: Step::EvalLoop, result: format!("{count} {noun}, {} bytes", grouped(bytes)), evidence }
    }
}

fn described(piece: &Piece) -> String {
    let kind = match piece.kind {
        PieceKind::Main => "",
        PieceKind::Part => ", of a function of its own",
    };
    format!("{:#x} to {:#x} in the file{kind}", piece.begin, piece.end)
}

/// 69630 as `69,630`.
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

impl EvalLoopRefusal {
    /// A name that does not change, for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            EvalLoopRefusal::NoSymbol => "eval-loop-no-symbol",
            EvalLoopRefusal::NoRange { .. } => "eval-loop-no-range",
            EvalLoopRefusal::NoLoop { .. } => "eval-loop-not-found",
            EvalLoopRefusal::Contradiction { .. } => "eval-loop-contradicted",
            EvalLoopRefusal::CallFrames(_) => "eval-loop-unwind-information",
            EvalLoopRefusal::TooMuchCode => "eval-loop-too-much-code",
            EvalLoopRefusal::TooManyPieces(_) => "eval-loop-too-many-pieces",
        }
    }

    /// What a user can do about it.
    pub const fn remedy(&self) -> &'static str {
        match self {
            EvalLoopRefusal::NoSymbol => {
                "keep the exported symbols of this file; `explain` shows its stacks all the same"
            }
            _ => {
                "please report this with the output of `wholestack explain --json PID`; \
                 `explain` shows its stacks all the same"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pieces_are_counted_and_some_are_listed() {
        let piece = |number: u64, kind| Piece { begin: number << 12, end: (number << 12) + 100, kind };
        let one =
            EvalLoop { address: 0x40_1000, pieces: vec![piece(1, PieceKind::Main)], links: None, moments: Vec::new() }
                .noted();
        assert_eq!((one.step.name(), one.result.as_str()), ("eval loop", "1 piece, 100 bytes"));
        assert_eq!(
            one.evidence,
            ["_PyEval_EvalFrameDefault at 0x401000 of the file's addresses", "0x1000 to 0x1064 in the file"]
        );
        let many = EvalLoop {
            address: 0,
            pieces: (1..=300).map(|number| piece(number, PieceKind::Part)).collect(),
            links: None,
            moments: Vec::new(),
        };
        let many = many.noted();
        assert_eq!(many.result, "300 pieces, 30,000 bytes");
        assert_eq!(many.evidence.len(), LISTED + 2);
        assert!(many.evidence[1].ends_with("of a function of its own") && many.evidence[LISTED + 1] == "and 292 more");
    }

    #[test]
    fn digits_in_threes() {
        let texts = [0, 999, 1_000, 69_630, 1_000_001].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "69,630", "1,000,001"]);
    }
}
