//! CPython from outside: interpreters found by what a file is, the way from a thread to its Python stack derived from the
//! file's own code, proven on the live process, and code objects named. Without any help from the target.
//!
//! [`mod@file`] says what a file is. [`mod@examine`] goes from there to what the walker must know, step by step: [`layout`], [`code`]
//! (where a thread's state is kept), [`slot`] and [`way`] (how to get there). [`prove`] checks it on the threads of the live
//! process. [`eval_loop`] says which native code Python frames stand for. What of this depends on a file alone are its [`facts`];
//! [`interpreters`] does all of it for a process.
//!
//! [`stack`] takes stacks, and names them by [`code_object`], [`lines`] and [`strings`]. [`sampled`] is what the sampler is told,
//! so that it takes them, and what is made of what it sends.
//!
//! What cannot be proven is refused by name: [`Refusal`].

pub mod code;
pub mod code_object;
pub mod eval_loop;
pub mod examine;
pub mod facts;
pub mod file;
pub mod interpreters;
pub mod layout;
pub mod lines;
pub mod memory;
pub mod prove;
pub mod refusal;
pub mod sampled;
pub mod slot;
pub mod snapshot;
pub mod stack;
pub mod strings;
pub mod version;
pub mod way;

pub use examine::{Examined, Noted, Ready, Subject, examine};
pub use memory::{Memory, Unreadable};
pub use refusal::Refusal;
pub use version::Version;
