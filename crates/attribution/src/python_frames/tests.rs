//! Frames in doubt, and counts.

use abi::stop::Stop;

use super::*;

fn native(offset: u64) -> u64 {
    word::object(0, 7, offset)
}

fn frame(id: u64) -> [u64; 2] {
    [word::python(0x5000 + id * 0x100), word::python_at(id as u32, 3 * id as u32)]
}

fn root() -> u64 {
    word::end(Stop::Root as u8, 7, 0)
}

#[test]
fn frames_without_doubt_stay() {
    let ([a, a_at], [b, b_at]) = (frame(1), frame(2));
    let caught = word::python_fault(Fault::HalfPushed as u8);
    assert_eq!(in_doubt(&[native(1), a, a_at, caught, native(2), b, b_at, root()]), None);
    assert_eq!(in_doubt(&[]), None);
}

#[test]
fn what_cannot_be_told_is_not_shown() {
    let unproven = word::python_fault(Fault::Unproven as u8);
    let (other, one) = (native(1), native(4));
    let ([a, a_at], [b, b_at]) = (frame(1), frame(2));
    let words = [a, a_at, other, b, b_at, unproven, root()];
    assert_eq!(in_doubt(&words), Some(vec![unproven, other, unproven, root()]));
    // a fault on the way stays
    let fault = word::python_fault(Fault::FrameUnreadable as u8);
    let words = [a, a_at, fault, one, unproven, root()];
    assert_eq!(in_doubt(&words), Some(vec![unproven, fault, one, root()]));
    // of a frame that was cut in two, too
    let words = [a, word::cut(3), b_at, one, unproven, root()];
    assert_eq!(in_doubt(&words), Some(vec![unproven, word::cut(3), one, root()]));
}

#[test]
fn numbers_are_grouped() {
    for (number, text) in [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (1204, "1,204"),
        (1_234_567, "1,234,567"),
        (u64::MAX, "18,446,744,073,709,551,615"),
    ] {
        assert_eq!(grouped(number), text);
    }
}
