//! The HTML page in a real browser: what it draws, what it says, and that its figures are right.

mod browser;
