//! The programs, and the ways in which each is compiled.

/// A compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// `cc`.
    C,
    /// `c++`.
    Cpp,
    /// `rustc`.
    Rust,
    /// `musl-gcc`: C with another C library.
    Musl,
}

/// A source file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// Name, with extension.
    pub name: &'static str,
    /// Content.
    pub text: &'static str,
}

/// A program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    /// Name.
    pub name: &'static str,
    /// Compiler.
    pub language: Language,
    /// Source.
    pub source: Source,
    /// Another source that is linked to it.
    pub more: Option<Source>,
    /// A library that it opens; its path is the first argument.
    pub opens: Option<Source>,
    /// Step from the first instruction of the process, which is the dynamic linker's; else from the program's own.
    pub from_first: bool,
    /// How it is compiled.
    pub variants: &'static [Variant],
}

/// A set of compiler options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Name.
    pub name: &'static str,
    /// Options.
    pub flags: &'static [&'static str],
}

const fn variant(name: &'static str, flags: &'static [&'static str]) -> Variant {
    Variant { name, flags }
}

const C: &[Variant] = &[
    variant("O0", &["-O0"]),
    variant("O0-no-frame-pointer", &["-O0", "-fomit-frame-pointer"]),
    variant("O1", &["-O1"]),
    variant("O2", &["-O2"]),
    variant("Os", &["-Os"]),
    variant("O2-frame-pointer", &["-O2", "-fno-omit-frame-pointer"]),
    variant("O2-clash", &["-O2", "-fstack-clash-protection"]),
    variant("O2-clash-frame-pointer", &["-O2", "-fstack-clash-protection", "-fno-omit-frame-pointer"]),
    variant("O2-realign", &["-O2", "-mstackrealign", "-mincoming-stack-boundary=3"]),
    variant("O0-realign", &["-O0", "-mstackrealign", "-mincoming-stack-boundary=3"]),
    variant("O2-lazy-no-pie", &["-O2", "-no-pie", "-fno-pie", "-Wl,-z,lazy"]),
    variant("O2-lazy-ibt", &["-O2", "-fcf-protection=full", "-Wl,-z,lazy,-z,ibtplt"]),
    variant("O2-lazy-gold", &["-O2", "-fuse-ld=gold", "-Wl,-z,lazy"]),
    variant("O2-now", &["-O2", "-Wl,-z,now"]),
    variant("O2-no-plt", &["-O2", "-fno-plt"]),
    variant("Os-static", &["-Os", "-static"]),
    variant("O2-static-pie", &["-O2", "-static-pie"]),
    variant("O3-avx2", &["-O3", "-mavx2"]),
    variant("O0-avx2", &["-O0", "-mavx2"]),
];

const TLS: &[Variant] = &[
    variant("O2", &["-O2"]),
    variant("O0", &["-O0"]),
    variant("O2-descriptors", &["-O2", "-mtls-dialect=gnu2"]),
    variant("O2-lazy-descriptors", &["-O2", "-mtls-dialect=gnu2", "-Wl,-z,lazy"]),
];

const FEW: &[Variant] = &[variant("O2", &["-O2"]), variant("Os-static", &["-Os", "-static"])];

const INTERRUPTED: &[Variant] = &[
    variant("O0", &["-O0"]),
    variant("O2-lazy-clash", &["-O2", "-fstack-clash-protection", "-Wl,-z,lazy"]),
    variant("O2-frame-pointer", &["-O2", "-fno-omit-frame-pointer"]),
    variant("Os-static", &["-Os", "-static"]),
];

const CPP: &[Variant] = &[
    variant("O0", &["-O0"]),
    variant("O2", &["-O2"]),
    variant("Os", &["-Os"]),
    variant("O2-frame-pointer", &["-O2", "-fno-omit-frame-pointer"]),
    variant("O2-lazy-no-pie", &["-O2", "-no-pie", "-fno-pie", "-Wl,-z,lazy"]),
    variant("O2-static", &["-O2", "-static"]),
];

const RUST: &[Variant] = &[
    variant("0", &["-Copt-level=0"]),
    variant("2", &["-Copt-level=2"]),
    variant("s", &["-Copt-level=s"]),
    variant("2-frame-pointer", &["-Copt-level=2", "-Cforce-frame-pointers=yes"]),
    variant("2-no-pie", &["-Copt-level=2", "-Crelocation-model=static"]),
    variant("2-static", &["-Copt-level=2", "-Ctarget-feature=+crt-static"]),
];

macro_rules! source {
    ($name:literal) => {
        Source { name: $name, text: include_str!(concat!("../../../programs/", $name)) }
    };
}

const fn program(name: &'static str, language: Language, source: Source, variants: &'static [Variant]) -> Program {
    Program { name, language, source, more: None, opens: None, from_first: false, variants }
}

/// The same, interrupted by a signal before each of its instructions.
const fn interrupted(name: &'static str, program: Program, variants: &'static [Variant]) -> Program {
    Program { name, more: Some(source!("interrupt.c")), variants, ..program }
}

const PROGRAMS: &[Program] = &[
    program("calls", Language::C, source!("calls.c"), C),
    program("stack", Language::C, source!("stack.c"), C),
    program("vectors", Language::C, source!("vectors.c"), C),
    program("signals", Language::C, source!("signals.c"), C),
    program("jumps", Language::C, source!("jumps.c"), C),
    program("library", Language::C, source!("library.c"), C),
    program("odd", Language::C, source!("odd.c"), FEW),
    program("exceptions", Language::Cpp, source!("exceptions.cpp"), CPP),
    program("templates", Language::Cpp, source!("templates.cpp"), CPP),
    program("rust", Language::Rust, source!("unwinding.rs"), RUST),
    program("musl-calls", Language::Musl, source!("calls.c"), FEW),
    program("musl-signals", Language::Musl, source!("signals.c"), FEW),
    interrupted("interrupted-calls", program("", Language::C, source!("calls.c"), C), INTERRUPTED),
    interrupted("interrupted-stack", program("", Language::C, source!("stack.c"), C), INTERRUPTED),
    interrupted("interrupted-jumps", program("", Language::C, source!("jumps.c"), C), INTERRUPTED),
    interrupted("interrupted-library", program("", Language::C, source!("library.c"), C), INTERRUPTED),
    interrupted("interrupted-exceptions", program("", Language::Cpp, source!("exceptions.cpp"), CPP), FEW),
    Program { from_first: true, ..program("loader", Language::C, source!("empty.c"), FEW) },
    Program {
        opens: Some(source!("threadlocal_library.c")),
        ..program("threadlocal", Language::C, source!("threadlocal.c"), TLS)
    },
];

/// All of them.
pub fn programs() -> &'static [Program] {
    PROGRAMS
}
