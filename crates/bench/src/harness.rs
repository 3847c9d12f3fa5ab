//! Interleaved runs: each round runs every variant once and begins with another one each time, so that what changes on
//! the machine meanwhile meets all of them. A bare run stands at both ends of a round and shows what chance does.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::interrupt;
use crate::statistics::Summary;

/// What one run gave, by name; the name says the unit.
pub type Figures = BTreeMap<&'static str, f64>;

/// Something to be measured.
pub struct Variant<'a> {
    /// What a reader calls it.
    pub name: String,
    run: Box<dyn FnMut() -> Result<Figures> + 'a>,
}

impl<'a> Variant<'a> {
    /// One that `run` measures once at each call.
    pub fn new(name: impl Into<String>, run: impl FnMut() -> Result<Figures> + 'a) -> Variant<'a> {
        Variant { name: name.into(), run: Box::new(run) }
    }
}

/// All runs of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// One for each run that succeeded.
    pub runs: Vec<Figures>,
    /// Why each of the others failed.
    pub failures: Vec<String>,
}

impl Series {
    fn new(name: impl Into<String>) -> Series {
        Series { name: name.into(), runs: Vec::new(), failures: Vec::new() }
    }

    /// Of one figure in all runs that have it.
    pub fn summary(&self, figure: &str) -> Option<Summary> {
        Summary::of(self.runs.iter().filter_map(|run| run.get(figure).copied()))
    }

    /// Its median.
    pub fn median(&self, figure: &str) -> Option<f64> {
        self.summary(figure).map(|summary| summary.median)
    }

    fn add(&mut self, round: usize, result: Result<Figures>) {
        match result {
            Ok(figures) => {
                eprintln!("  {}, round {}: {}", self.name, round + 1, text(&figures));
                self.runs.push(figures);
            }
            Err(error) => {
                eprintln!("  {}, round {}: FAILED: {error:#}", self.name, round + 1);
                self.failures.push(format!("{error:#}"));
            }
        }
    }
}

fn text(figures: &Figures) -> String {
    figures.iter().map(|(name, value)| format!("{name} {value:.4}")).collect::<Vec<_>>().join(", ")
}

/// Indices of `count` variants in the order of a round.
pub fn order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| (round + index) % count.max(1))
}

/// Runs every variant `rounds` times.
///
/// # Errors
/// Only if the user interrupts it; what else fails is kept in the series.
pub fn interleave(rounds: usize, mut variants: Vec<Variant<'_>>) -> Result<Vec<Series>> {
    let mut series: Vec<Series> = variants.iter().map(|variant| Series::new(&variant.name)).collect();
    for round in 0..rounds {
        for index in order(round, variants.len()) {
            let result = (variants[index].run)();
            interrupt::check()?;
            series[index].add(round, result);
        }
    }
    Ok(series)
}

/// As [`interleave`], with a bare run before and after all variants of each round; the two come first and last.
///
/// # Errors
/// As [`interleave`].
pub fn interleave_between(rounds: usize, mut bare: Variant<'_>, mut variants: Vec<Variant<'_>>) -> Result<Vec<Series>> {
    let mut first = Series::new(&bare.name);
    let mut again = Series::new(format!("{}, again", bare.name));
    let mut series: Vec<Series> = variants.iter().map(|variant| Series::new(&variant.name)).collect();
    for round in 0..rounds {
        first.add(round, (bare.run)());
        for index in order(round, variants.len()) {
            interrupt::check()?;
            series[index].add(round, (variants[index].run)());
        }
        interrupt::check()?;
        again.add(round, (bare.run)());
    }
    series.insert(0, first);
    series.push(again);
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn noted<'a>(name: &'static str, log: &'a RefCell<Vec<&'static str>>) -> Variant<'a> {
        Variant::new(name, move || {
            log.borrow_mut().push(name);
            Ok(Figures::from([("value", log.borrow().len() as f64)]))
        })
    }

    #[test]
    fn each_round_begins_with_another_variant() {
        let log = RefCell::default();
        let variants = vec![noted("a", &log), noted("b", &log), noted("c", &log)];
        let series = interleave_between(3, noted("bare", &log), variants).expect("no interrupt");
        assert_eq!(log.borrow().join(" "), "bare a b c bare bare b c a bare bare c a b bare");
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["bare", "a", "b", "c", "bare, again"]);
        assert!(series.iter().all(|series| series.runs.len() == 3 && series.failures.is_empty()));
        assert_eq!(series[1].median("value"), Some(9.0), "runs 2, 9 and 13");
    }

    #[test]
    fn every_variant_comes_first_equally_often() {
        for count in 1..6 {
            for place in 0..count {
                let mut there: Vec<usize> = (0..count).filter_map(|round| order(round, count).nth(place)).collect();
                there.sort_unstable();
                assert_eq!(there, (0..count).collect::<Vec<_>>(), "{count} variants, place {place}");
            }
        }
        assert_eq!(order(3, 0).count(), 0);
    }

    #[test]
    fn failures_are_kept() {
        let variants = vec![Variant::new("broken", || anyhow::bail!("no such program"))];
        let series = interleave(2, variants).expect("no interrupt");
        assert_eq!(series[0].failures, ["no such program", "no such program"]);
        assert_eq!(series[0].median("value"), None);
    }
}
