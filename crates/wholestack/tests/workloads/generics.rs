//! Three leaves, each below twenty levels of `Wrap<Wrap<...>>`, reached through boxed closures and an iterator.
//! Follows the protocol of kit.h.

use std::io::{BufRead, Write};

trait Node {
    fn eval(&self, n: u64) -> u64;
}

macro_rules! leaf {
    ($name:ident, $add:expr) => {
        struct $name;
        impl Node for $name {
            #[inline(never)]
            fn eval(&self, n: u64) -> u64 {
                let mut x = n | 1;
                for _ in 0..n {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    x = x.wrapping_add($add);
                }
                x
            }
        }
    };
}
leaf!(Leaf60, 60);
leaf!(Leaf30, 30);
leaf!(Leaf10, 10);

struct Wrap<T>(T, u64);

impl<T: Node> Node for Wrap<T> {
    #[inline(never)]
    fn eval(&self, n: u64) -> u64 {
        self.0.eval(n).rotate_left(3) ^ self.1
    }
}

fn wrap5<T: Node>(inner: T) -> Wrap<Wrap<Wrap<Wrap<Wrap<T>>>>> {
    Wrap(Wrap(Wrap(Wrap(Wrap(inner, 1), 2), 3), 4), 5)
}

fn wrap20<T: Node>(inner: T) -> impl Node {
    wrap5(wrap5(wrap5(wrap5(inner))))
}

type Part = Box<dyn Fn(u64) -> u64>;

#[inline(never)]
fn drive(parts: &[Part], unit: u64) -> u64 {
    parts.iter().zip([6, 3, 1]).map(|(part, weight)| part(weight * unit)).fold(0, |a, b| a.rotate_left(1) ^ b)
}

fn cpu_seconds() -> f64 {
    // the first field is the run time of the thread in nanoseconds
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() {
    let budget: f64 = std::env::args().nth(1).and_then(|value| value.parse().ok()).unwrap_or(1.0);
    let gated = std::env::var("GATE").map(|value| value != "0").unwrap_or(true);
    let (a, b, c) = (wrap20(Leaf60), wrap20(Leaf30), wrap20(Leaf10));
    let parts: Vec<Part> =
        vec![Box::new(move |n| a.eval(n)), Box::new(move |n| b.eval(n)), Box::new(move |n| c.eval(n))];
    println!("READY {}", std::process::id());
    let _ = std::io::stdout().flush();
    let stdin = std::io::stdin();
    let mut line = String::new();
    if gated && stdin.lock().read_line(&mut line).unwrap_or(0) == 0 {
        std::process::exit(3);
    }
    let begun = cpu_seconds();
    let (mut sum, mut unit, mut random) = (0, 0, 1u32);
    while cpu_seconds() - begun < budget {
        for _ in 0..20 {
            // rounds of different lengths, so that no rate of sampling is in step with them
            random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            let now = 2000 + u64::from(random >> 16) % 4000;
            sum ^= drive(&parts, now);
            unit += now;
        }
    }
    let cpu = cpu_seconds() - begun;
    let (six, three) = (6 * unit, 3 * unit);
    println!("{{\"cpu_s\":{cpu:.6},\"truth\":{{\"Leaf60\":{six},\"Leaf30\":{three},\"Leaf10\":{unit}}},\"sum\":{}}}", sum % 2);
    let _ = std::io::stdout().flush();
    while gated && stdin.lock().read_line(&mut line).unwrap_or(0) != 0 {}
}
