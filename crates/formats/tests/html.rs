//! The HTML page and the SVG picture in a real browser: what they draw, what they say, and that their figures are
//! right.

mod browser;
