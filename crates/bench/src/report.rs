//! The report: Markdown for people, one JSON document for programs.

use std::fmt::Write;

use serde::Serialize;

use crate::harness::Series;
use crate::statistics::Summary;

/// A table of a section.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Their cells.
    pub rows: Vec<Vec<String>>,
}

/// What one measure gave.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// What the columns mean and how they were measured.
    pub about: String,
    /// The result.
    pub tables: Vec<Table>,
    /// All runs.
    pub series: Vec<Series>,
    /// What was computed from several variants, or failed.
    pub notes: Vec<String>,
}

impl Section {
    /// One that could not be measured at all.
    pub fn failed(title: &'static str, error: &anyhow::Error) -> Section {
        let about = format!("Not measured: {error:#}");
        Section { title, about, tables: Vec::new(), series: Vec::new(), notes: Vec::new() }
    }
}

/// A column: its heading, the figure, what it is multiplied by, and decimals.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    heading: &'static str,
    figure: &'static str,
    factor: f64,
    decimals: usize,
}

/// A column of a figure as it is.
pub const fn column(heading: &'static str, figure: &'static str, decimals: usize) -> Column {
    Column { heading, figure, factor: 1.0, decimals }
}

impl Column {
    /// In another unit.
    pub const fn times(self, factor: f64) -> Column {
        Column { factor, ..self }
    }
}

impl Table {
    /// One row per variant: the median of each figure and, in parentheses, the least and the most.
    pub fn of(series: &[Series], first: &str, columns: &[Column]) -> Table {
        let mut headings = vec![first.to_owned()];
        headings.extend(columns.iter().map(|column| column.heading.to_owned()));
        headings.push("runs".to_owned());
        let rows = series.iter().map(|series| {
            let mut cells = vec![series.name.clone()];
            cells.extend(columns.iter().map(|column| cell(series.summary(column.figure), *column)));
            cells.push(runs(series));
            cells
        });
        Table { columns: headings, rows: rows.collect() }
    }
}

/// A series' count of runs, and what failed.
fn runs(series: &Series) -> String {
    match series.failures.as_slice() {
        [] => series.runs.len().to_string(),
        [first, ..] => format!("{}; {} failed: {first}", series.runs.len(), series.failures.len()),
    }
}

fn cell(summary: Option<Summary>, column: Column) -> String {
    let Some(summary) = summary else { return "-".to_owned() };
    let text = |value: f64| format!("{:.*}", column.decimals, value * column.factor);
    let (median, least, most) = (text(summary.median), text(summary.least), text(summary.most));
    if least == most { median } else { format!("{median} ({least}-{most})") }
}

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What it was made on and how, each with its name.
    pub conditions: Vec<(&'static str, String)>,
    /// The measures.
    pub sections: Vec<Section>,
}

impl Report {
    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.conditions {
            let _ = writeln!(text, "- {name}: {value}");
        }
        self.sections.iter().for_each(|section| add_section(&mut text, section));
        text
    }
}

fn add_section(text: &mut String, section: &Section) {
    let _ = writeln!(text, "\n## {}\n\n{}", section.title, section.about);
    for table in &section.tables {
        text.push('\n');
        add_row(text, &table.columns);
        add_row(text, &vec!["---".to_owned(); table.columns.len()]);
        table.rows.iter().for_each(|row| add_row(text, row));
    }
    if !section.notes.is_empty() {
        text.push('\n');
    }
    section.notes.iter().for_each(|note| _ = writeln!(text, "- {note}"));
}

fn add_row(text: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Figures;

    fn series(name: &str, values: &[f64], failures: &[&str]) -> Series {
        Series {
            name: name.to_owned(),
            runs: values.iter().map(|value| Figures::from([("seconds", *value)])).collect(),
            failures: failures.iter().map(|failure| (*failure).to_owned()).collect(),
        }
    }

    #[test]
    fn tables_show_spread_and_failures() {
        let all = [series("a", &[0.001, 0.003, 0.002], &[]), series("b|c", &[], &["no such\nprogram"])];
        let table = Table::of(&all, "who", &[column("ms", "seconds", 1).times(1e3)]);
        let section =
            Section { title: "T", about: "What.".into(), tables: vec![table], series: all.to_vec(), notes: vec![] };
        let mut text = String::new();
        add_section(&mut text, &section);
        let expected = "\n## T\n\nWhat.\n\n| who | ms | runs |\n| --- | --- | --- |\n| a | 2.0 (1.0-3.0) | 3 |\n\
                        | b\\|c | - | 0; 1 failed: no such program |\n";
        assert_eq!(text, expected);
    }
}
