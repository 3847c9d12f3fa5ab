//! Ratios to the bare runs of the same round.

use crate::harness::Series;

/// Adds the ratios to the bare runs of each round, as far as no run of a series failed: then rounds cannot be told apart.
pub fn relate(mut series: Vec<Series>) -> Vec<Series> {
    let (Some(first), Some(again)) = (series.first().cloned(), series.last().cloned()) else { return series };
    let complete = |series: &Series| series.failures.is_empty();
    if !complete(&first) || !complete(&again) {
        return series;
    }
    for one in series.iter_mut().filter(|series| complete(series)) {
        for (run, (first, again)) in one.runs.iter_mut().zip(first.runs.iter().zip(&again.runs)) {
            for (figure, ratio) in [("cpu", "CPU ratio"), ("wall", "wall ratio")] {
                run.insert(ratio, run[figure] / f64::midpoint(first[figure], again[figure]));
            }
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Figures;

    #[test]
    fn ratios_are_to_the_bare_runs_of_the_same_round() {
        let of = |name: &str, cpu: &[f64]| Series {
            name: name.to_owned(),
            runs: cpu.iter().map(|cpu| Figures::from([("cpu", *cpu), ("wall", *cpu * 2.0)])).collect(),
            failures: vec![],
        };
        let mut broken = of("broken", &[9.0]);
        broken.failures.push("gone".to_owned());
        let series = vec![of("none", &[1.0, 2.0]), of("a", &[1.5, 4.5]), broken, of("none, again", &[2.0, 4.0])];
        let series = relate(series);
        let ratios: Vec<f64> = series[1].runs.iter().map(|run| run["CPU ratio"]).collect();
        assert_eq!(ratios, [1.0, 1.5]);
        assert_eq!(series[1].runs[1]["wall ratio"], 1.5);
        assert!(!series[2].runs[0].contains_key("CPU ratio"));
    }
}
