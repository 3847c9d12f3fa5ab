//! Why a user stack ends where it ends.

macro_rules! stops {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// The reason, as a code in the last word of a user stack.
        #[repr(u8)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Stop {
            $($(#[$doc])* $name = $code,)*
        }

        impl Stop {
            /// Every reason.
            pub const ALL: &'static [Stop] = &[$(Stop::$name),*];

            /// The reason with this code.
            pub const fn from_code(code: u8) -> Option<Stop> {
                match code {
                    $($code => Some(Stop::$name),)*
                    _ => None,
                }
            }

            /// What a user reads, without the object's name.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Stop::$name => $text,)*
                }
            }
        }
    };
}

stops! {
    /// The outermost frame was reached: the stack is whole.
    Root = 1, "root";
    /// There is no user stack: a kernel thread, or a task that has not been in user mode yet.
    NoUserStack = 2, "no user stack";
    /// The process was exiting and had given up its memory.
    Exiting = 3, "process exiting, its memory is gone";
    /// The pc lies in no known executable mapping.
    NoMapping = 4, "address in no executable mapping";
    /// No unwind information for the pc, and the frame pointer leads nowhere. Detail: the object.
    NoUnwindInfo = 5, "no unwind info";
    /// There is unwind information in a form that is not supported. Detail: the object; more: an
    /// [`unsupported`](crate::table::unsupported) reason.
    UnsupportedRule = 6, "unsupported unwind rule";
    /// The rule needs a register that is known in an interrupted frame only. Detail: the object.
    LostRegister = 7, "unwind rule needs a lost register";
    /// The stack could not be read: paged out, or not mapped.
    UnreadableStack = 8, "unreadable stack";
    /// The caller's frame would not lie above this one: a switched stack or damaged memory.
    NotAscending = 9, "stack does not ascend";
    /// More frames than a walk may take.
    TooDeep = 10, "deeper than a walk may go";
    /// A 32-bit task on a 64-bit kernel.
    Compat32 = 11, "32-bit task";
    /// The walk was made on a copy of the stack, and the copy ends here.
    CopyEnds = 12, "end of the copied part of the stack";
    /// The recording ended before the table of an object was ready. Detail: the object.
    TableNotReady = 13, "unwind table not ready";
    /// The return address is not usable: zero in mid-stack or in the kernel's half.
    BadReturnAddress = 14, "bad return address";
    /// The process's mappings could not be learnt before it was gone.
    UnknownProcess = 15, "process gone before its mappings were read";
    /// The task was in the middle of exec: the old image is gone and the new one has not begun.
    Execing = 16, "process replaces its image (exec)";
    /// Code without unwind information, and what would be the return address does not follow a call. Detail: the object.
    NoCall = 17, "no unwind info, no caller found";
}

impl Stop {
    /// Whether the stack is whole: all that there is was walked.
    pub const fn is_whole(self) -> bool {
        matches!(self, Stop::Root | Stop::NoUserStack | Stop::Exiting | Stop::Execing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for stop in Stop::ALL {
            assert_eq!(Stop::from_code(*stop as u8), Some(*stop));
        }
        assert_eq!(Stop::from_code(0), None);
        assert_eq!(Stop::from_code(200), None);
    }
}
