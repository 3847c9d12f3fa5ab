//! Medians, spreads and straight lines.

use serde::Serialize;

/// What is said of several measurements of one thing.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// How many there are.
    pub count: usize,
}

impl Summary {
    /// Of all finite `values`; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) };
        Some(Summary { median, least, most, count: sorted.len() })
    }
}

/// A straight line.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Its value at 0.
    pub at_zero: f64,
    /// What one more adds.
    pub slope: f64,
}

impl Line {
    /// The line of least squares through `points`, each `(x, y)`; `None` without two different x.
    pub fn through(points: &[(f64, f64)]) -> Option<Line> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        if !square.is_normal() {
            return None;
        }
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / square;
        Some(Line { at_zero: y - slope * x, slope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        let odd = Summary::of([3.0, 1.0, 2.0]).expect("values");
        assert_eq!((odd.median, odd.least, odd.most, odd.count), (2.0, 1.0, 3.0, 3));
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 3.0]).map(|summary| summary.median), Some(2.5));
        assert_eq!(Summary::of([f64::NAN, 7.0]).map(|summary| (summary.median, summary.count)), Some((7.0, 1)));
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn lines_need_two_places() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
        // by hand: means 2 and 4; slope (1*3 + 1*1) / 2 = 2
        let line = Line::through(&[(1.0, 1.0), (2.0, 6.0), (3.0, 5.0)]).expect("three places");
        assert_eq!(line, Line { at_zero: 0.0, slope: 2.0 });
    }

    proptest! {
        #[test]
        fn a_line_is_found_again(at_zero in -1e3..1e3f64, slope in -1e3..1e3f64, x in prop::collection::vec(0..1000u32, 2..20)) {
            prop_assume!(x.iter().any(|other| *other != x[0]));
            let points: Vec<(f64, f64)> = x.iter().map(|x| (f64::from(*x), at_zero + slope * f64::from(*x))).collect();
            let line = Line::through(&points).expect("two places");
            prop_assert!((line.slope - slope).abs() < 1e-6 && (line.at_zero - at_zero).abs() < 1e-3, "{line:?}");
        }

        #[test]
        fn half_of_all_values_lie_on_each_side(values in prop::collection::vec(-1e9..1e9f64, 1..50)) {
            let median = Summary::of(values.clone()).expect("values").median;
            let half = values.len().div_ceil(2);
            prop_assert!(values.iter().filter(|value| **value <= median).count() >= half);
            prop_assert!(values.iter().filter(|value| **value >= median).count() >= half);
        }
    }
}
