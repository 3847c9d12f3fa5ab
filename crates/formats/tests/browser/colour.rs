//! Whether colours can be read, and told apart by those who see fewer of them.

use serde_json::Value;

/// Red, green and blue as light intensities.
type Linear = [f64; 3];

/// How colours are seen without one kind of cone: Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
const VISIONS: [(&str, [[f64; 3]; 3]); 4] = [
    ("normal", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    ("protanopia", [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    (
        "deuteranopia",
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    ),
    ("tritanopia", [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
];

/// Contrast that WCAG 2 asks for at level AA.
const ENOUGH_CONTRAST: f64 = 4.5;

/// Distance in CIELAB (1976) at which two filled boxes are plainly different.
const PLAINLY_DIFFERENT: f64 = 9.0;

/// Checks a theme of the palette: text on every fill, and every pair of kinds.
pub fn check(theme: &Value, background: &str) {
    let text = parse(theme["text"].as_str().unwrap());
    let kinds: Vec<(&String, &Value)> =
        theme.as_object().unwrap().iter().filter(|(_, shades)| shades.is_array()).collect();
    for (kind, shades) in &kinds {
        for shade in shades.as_array().unwrap() {
            let contrast = contrast(parse(shade.as_str().unwrap()), text);
            assert!(contrast >= ENOUGH_CONTRAST, "text on {kind} {shade}: {contrast:.2}");
        }
    }
    let fill = parse(theme["match"].as_str().unwrap());
    assert!(contrast(fill, parse(theme["matchText"].as_str().unwrap())) >= ENOUGH_CONTRAST);
    assert!(contrast(fill, parse(background)) >= ENOUGH_CONTRAST, "a match is easy to see");
    for (index, (kind, shades)) in kinds.iter().enumerate() {
        for (other, other_shades) in &kinds[..index] {
            // what is no function is hatched or in the first rows, whatever its colour
            if [kind, other].iter().all(|kind| ["marker", "group", "other"].contains(&kind.as_str())) {
                continue;
            }
            let first = |shades: &Value| shades[0].as_str().unwrap().to_owned();
            check_pair((kind, &first(shades)), (other, &first(other_shades)));
        }
    }
}

/// Checks that two colours, each with the name of its kind, are plainly different for everybody.
pub fn check_pair((kind, colour): (&str, &str), (other, other_colour): (&str, &str)) {
    for (vision, matrix) in VISIONS {
        let seen = |colour: &str| lab(see(matrix, parse(colour)));
        let distance = distance(seen(colour), seen(other_colour));
        assert!(distance >= PLAINLY_DIFFERENT, "{kind} and {other}, {vision}: {distance:.1}");
    }
}

fn parse(hex: &str) -> Linear {
    [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn contrast(a: Linear, b: Linear) -> f64 {
    let luminance = |[r, g, b]: Linear| 0.2126 * r + 0.7152 * g + 0.0722 * b;
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn see(matrix: [[f64; 3]; 3], colour: Linear) -> Linear {
    matrix.map(|row| row.iter().zip(colour).map(|(factor, part)| factor * part).sum::<f64>().clamp(0.0, 1.0))
}

fn lab([r, g, b]: Linear) -> [f64; 3] {
    let xyz = [
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    ];
    let [x, y, z] = xyz.map(|t| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
