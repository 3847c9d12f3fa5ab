//! The kinds of disagreement that are known, and who is right in each.
//!
//! A kind is known only if its reason was found in the row itself, and if the arbiter gives the same caller as the side
//! that is said to be right. Everything else fails the run.

use serde::Serialize;

/// Who is right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Our table is: the arbiter agrees with it.
    OursRight,
    /// Ours gives no caller, and says why; a stack ends there by name.
    OursRefuses,
    /// Nobody can say: no FDE describes the place, and framehop guesses.
    NoJudge,
    /// Ours is wrong, in a way that is known.
    OursWrong,
    /// Nobody knows why the sides differ, or ours is wrong and nobody knew. The run fails.
    Fault,
}

impl Verdict {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Verdict::OursRight => "ours is right",
            Verdict::OursRefuses => "ours refuses",
            Verdict::NoJudge => "no judge",
            Verdict::OursWrong => "OURS IS WRONG",
            Verdict::Fault => "FAULT",
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $verdict:ident, $why:literal;)*) => {
        /// A kind of disagreement.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$name),*];

            /// Who is right.
            pub const fn verdict(self) -> Verdict {
                match self {
                    $(Kind::$name => Verdict::$verdict,)*
                }
            }

            /// Whether the places have an FDE.
            pub const fn is_described(self) -> bool {
                !matches!(
                    self,
                    Kind::NoFdeFramePointer
                        | Kind::NoFdePadding
                        | Kind::NoFdeRecognised
                        | Kind::NoFdeClone
                        | Kind::NoFdeEndbr
                        | Kind::NoFdeCode
                )
            }

            /// Why.
            pub const fn why(self) -> &'static str {
                match self {
                    $(Kind::$name => $why,)*
                }
            }
        }
    };
}

kinds! {
    /// The CFA is by another register.
    OtherRegister: OursRight,
        "the CFA needs a register other than rip, rsp and rbp; framehop knows only those and falls back to rbp";
    /// The CFA is loaded from memory.
    LoadedCfa: OursRight,
        "the CFA is loaded from memory by an expression; framehop's expressions read no memory, it falls back to rbp";
    /// A signal frame.
    SignalFrame: OursRight,
        "the frame of a signal handler's return, whose CFA is loaded from the ucontext; framehop's expressions read no \
         memory, it falls back to rbp";
    /// The return address is in a register.
    ReturnInRegister: OursRight,
        "the return address is in a register that framehop does not know; it reads CFA-8 instead";
    /// The return address is in a register that is known in an interrupted frame only.
    ReturnInRegisterLost: OursRefuses,
        "the return address is in a register that a call does not keep; ours stops by name, framehop reads CFA-8";
    /// gcc's rows of functions that realign their stack.
    FramePointerGivenBack: OursRight,
        "gcc's row has rbp saved at rbp also behind the instruction that restores it; ours has it restored, as single \
         steps show (verify edges)";
    /// A register that is known in an interrupted frame only.
    LostRegister: OursRefuses,
        "the CFA needs a register that a call does not keep; ours stops by name, framehop falls back to rbp";
    /// rbp is not described in a form that is followed.
    FramePointerLost: OursRefuses,
        "the caller's rbp is undefined or in a form that is not supported; ours marks it lost, framehop goes on with \
         what is in rbp";
    /// The row is not supported.
    UnsupportedRule: OursRefuses,
        "the row has a form that the table does not support; ours stops by name";
    /// The row's CFA does not lie above the stack pointer.
    NotAscending: OursRefuses,
        "the row puts the CFA at or below the stack pointer, or where no stack pointer can be; ours stops by name";
    /// The instructions of an FDE are bad.
    BadFde: OursRefuses,
        "gimli cannot decode the FDE's instructions and our table says so by name";
    /// Ours takes instructions that gimli does not.
    NotDecoded: NoJudge,
        "gimli, and framehop with it, cannot decode the FDE's instructions to their end, and ours can; one comparison \
         stands for the rest of the function";
    /// framehop's search does not find the FDE.
    NotInSearchTable: OursRight,
        "the FDE is in .eh_frame but not in the search table of .eh_frame_hdr; framehop falls back to rbp";
    /// No FDE: ours follows the frame pointer, framehop guesses a leaf.
    NoFdeFramePointer: NoJudge,
        "no FDE; ours follows the frame pointer and marks the frame, framehop takes an interrupted place for a leaf";
    /// No FDE: padding.
    NoFdePadding: NoJudge,
        "fewer than 16 bytes without FDE, all of them padding, or the return before it: ours goes on with the rule \
         before, framehop guesses";
    /// No FDE: code that ours recognised.
    NoFdeRecognised: NoJudge,
        "no FDE; ours reads linkage stubs, start-up code and trampolines from their own bytes, framehop guesses";
    /// Small gaps with the system call of glibc's clone.
    NoFdeClone: OursWrong,
        "a system call that makes a thread, for which glibc has no FDE on purpose: ours goes on with the rule of the \
         function before, which is right in the parent and gives a wrong caller in the new thread";
    /// Small gaps that hold the first instruction of a function.
    NoFdeEndbr: OursWrong,
        "an endbr64 in front of the FDE of its function, as some assembly has it: ours goes on with the rule of the \
         function before, which is wrong for a thread that is interrupted at that instruction";
    /// Small gaps that hold other code.
    NoFdeCode: Fault,
        "fewer than 16 bytes without FDE that are no padding: ours goes on with the rule of the function before";
    /// A function that nothing calls.
    GoTopFrame: NoJudge,
        "Go's table flags the function as one that nothing returns from, the bottom of a stack; its code does not tell";
    /// A function that has no row.
    GoNoRule: OursRefuses,
        "Go's function goes to another stack and ours has no rule for it; ours follows the frame pointer and marks the \
         frame";
    /// Assembly in which the stack differs along a jump.
    GoBehindJump: OursWrong,
        "Go's assembler follows the stack pointer in the order of the code, not along jumps, so behind a jump out of \
         the function its table, by which Go's own tracebacks go, may be wrong, and ours with it";
    /// The table has another number of functions.
    FunctionCount: Fault,
        "the table was made of another number of FDEs than gimli finds in the file";
    /// The arbiter contradicts ours.
    Contradicted: Fault,
        "our table gives another caller than the judge, and the row of .eh_frame or the code does, too";
    /// Ours is right, but why framehop differs is not known.
    Unexplained: Fault,
        "ours gives the caller of the row of .eh_frame; why framehop does not is not known";
    /// Ours refuses a row that it should support.
    Refused: Fault,
        "our table refuses a row of an ordinary form";
}
