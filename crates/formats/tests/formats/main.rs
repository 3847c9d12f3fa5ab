//! Tests of all formats but the HTML view, on one synthetic profile and on random ones.

mod expected;
mod folded;
mod long;
mod output;
mod pprof;
mod random;
mod schema;
mod speedscope;
mod svg;
mod synthetic;
