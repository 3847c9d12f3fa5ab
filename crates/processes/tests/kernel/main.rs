//! The crate against the running kernel: what records say must be what /proc says.
//!
//! A C program does what it is told, step by step; after each step the table is compared with /proc.

/// Leaves a test that needs root, with a message, if the user is another.
macro_rules! needs_root {
    () => {
        if !rustix::process::getuid().is_root() {
            println!("SKIPPED: needs root");
            return;
        }
    };
}

mod actor;
mod files;
mod follow;
mod lifecycle;
mod machine;
mod namespaces;
mod ring;
mod seed;
