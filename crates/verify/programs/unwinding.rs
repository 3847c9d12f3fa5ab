//! Rust: generics, closures, trait objects, `Drop`, formatting, panics that are caught.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::panic::catch_unwind;

struct Guard(u64);

impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        black_box(self.0);
    }
}

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);
struct Circle(f64);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    #[inline(never)]
    fn area(&self) -> f64 {
        self.0 * self.0 * 3.0
    }
}

#[repr(align(64))]
struct Aligned([u8; 128]);

#[inline(never)]
fn aligned(depth: u64) -> u64 {
    let mut bytes = Aligned([0; 128]);
    bytes.0[depth as usize] = 1;
    black_box(&mut bytes);
    u64::from(bytes.0[3])
}

#[inline(never)]
fn down(depth: u64) -> u64 {
    let guard = Guard(depth);
    if depth == 0 {
        panic!("bottom");
    }
    down(depth - 1) + guard.0 + aligned(depth)
}

#[inline(never)]
fn large(seed: u8) -> u64 {
    let mut bytes = [seed; 3 * 4096 + 8];
    black_box(&mut bytes);
    bytes.iter().step_by(700).map(|byte| u64::from(*byte)).sum()
}

#[inline(never)]
fn apply(function: &dyn Fn(u64) -> u64, times: u64) -> u64 {
    (0..times).map(function).sum()
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let _ = black_box(catch_unwind(|| down(3)));
    let _ = black_box(catch_unwind(|| [1, 2, 3][black_box(7)]));
    let mut values: Vec<u64> = (0..20).map(|value| value * 7919 % 101).collect();
    values.sort_unstable();
    let names: BTreeMap<String, u64> = values.iter().take(5).map(|value| (format!("name {value}"), *value)).collect();
    let shapes: [Box<dyn Shape>; 2] = [Box::new(Square(2.0)), Box::new(Circle(3.0))];
    let area: f64 = shapes.iter().map(|shape| shape.area()).sum();
    let captured = values[3];
    black_box((names, area, large(3), aligned(4), apply(&|value| value * captured, 5)));
}
