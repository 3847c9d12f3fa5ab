//! The comparison of rows holds on real files, and finds tables that are wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use abi::table::{Rule, cfa, fp};
use objects::{Image, UnwindTable};
use verify::rows::{FileReport, Kind, Mode, Verdict, compare, compare_go, kind_at};

/// alloca in a function whose stack is realigned, and calls through linkage stubs.
const SOURCE: &str = r#"
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct aligned { _Alignas(64) char bytes[128]; };

__attribute__((noipa)) int use(struct aligned *a, char *b, size_t size) {
    memset(b, a->bytes[3], size);
    return b[size - 1];
}

/* what it gets on the stack it reaches by the CFA, which it keeps in a register and saves */
__attribute__((noipa)) int realigned(size_t size, int b, int c, int d, int e, int f, int g, int h) {
    struct aligned a;
    memset(&a, (int)size + b + c + d + e + f, sizeof a);
    return use(&a, alloca(size), size) + g * h;
}

__attribute__((noipa)) int grown(size_t size) {
    char *b = alloca(size);
    memset(b, (int)size, size);
    return b[size - 1];
}

__attribute__((noipa)) int many(int a, int b, int c, int d) {
    char text[256];
    snprintf(text, sizeof text, "%d %d %d %d", a * b, c / (d + 1), b ^ c, a - d);
    return atoi(text) + grown(strlen(text)) + realigned(strlen(text), a, b, c, d, a, b, c);
}

int main(int count, char **arguments) {
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += many(i, count, (int)strlen(arguments[i]), sum);
    return printf("%d\n", sum) < 0;
}
"#;

fn table(path: &Path) -> (Image, UnwindTable) {
    let image = Image::open(&std::fs::File::open(path).unwrap()).unwrap();
    let table = UnwindTable::build(&image).unwrap();
    (image, table)
}

fn compared(path: &Path) -> (UnwindTable, FileReport) {
    let (image, table) = table(path);
    let report = compare(&image, &table, &path.display().to_string()).unwrap();
    assert!(report.holds(), "{report}");
    (table, report)
}

fn count(report: &FileReport, kind: Kind) -> u64 {
    report.disagreements.iter().filter(|found| found.kind == kind).map(|found| found.count).sum()
}

/// The C library that this process runs with.
fn libc() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.find(|path| path.contains("/libc.so") || path.contains("/libc-")).map(PathBuf::from)
}

/// A program in the path.
fn program(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|directory| directory.join(name)).find(|path| path.is_file())
}

#[test]
fn the_c_library() {
    let Some(path) = libc() else { return println!("SKIPPED: this program is not linked with a shared C library") };
    let (_, report) = compared(&path);
    assert!(report.functions > 1000 && report.intervals > 5000, "{report}");
    let differing = report.described.comparisons - report.described.equal;
    assert!(differing * 100 < report.described.comparisons, "{report}");
}

/// What is said of one place is what the comparison of the file says of it.
#[test]
fn single_places() {
    let Some(path) = libc() else { return println!("SKIPPED: this program is not linked with a shared C library") };
    let (image, table) = table(&path);
    let report = compare(&image, &table, "libc").unwrap();
    let mut places = 0;
    for found in &report.disagreements {
        for example in &found.examples {
            let Some(mode) = example.mode else { continue };
            let into = match mode {
                Mode::Interrupted => 0,
                Mode::Called => 1,
            };
            let offset = image.vaddr_to_file_offset(example.address).unwrap() + into;
            assert_eq!(kind_at(&image, offset, mode), Some(found.kind), "{example}");
            places += 1;
        }
    }
    assert!(places > 5, "{report}");
    let same = report.described.equal > 0 && kind_at(&image, 0, Mode::Interrupted).is_none();
    assert!(same, "there is no code at the start of the file");
}

#[test]
fn alloca_realignment_and_linkage_stubs() {
    if program("cc").is_none() {
        return println!("SKIPPED: no C compiler");
    }
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("program.c");
    std::fs::write(&source, SOURCE).unwrap();
    let lazy = ["-Wl,-z,lazy", "-fcf-protection=none"];
    for (number, options) in [
        &["-O2", lazy[0], lazy[1]][..],
        &["-O0", lazy[0], "-fno-pie", "-no-pie"],
        &["-O2", lazy[0], "-fcf-protection=full", "-fno-omit-frame-pointer"],
        &["-O2", "-static"],
    ]
    .into_iter()
    .enumerate()
    {
        let built = directory.path().join(format!("program{number}"));
        let status = Command::new("cc").args(options).arg("-o").arg(&built).arg(&source).status().unwrap();
        assert!(status.success(), "{options:?}");
        let (table, report) = compared(&built);
        let has = |kind| table.rules.iter().any(|rule| rule.cfa == kind);
        let missing = [cfa::SP, cfa::FP, cfa::DEREF_FP, cfa::END, cfa::PLT].map(|kind| (kind, !has(kind)));
        let missing: Vec<u8> = missing.into_iter().filter(|(_, missing)| *missing).map(|(kind, _)| kind).collect();
        let allowed: &[u8] = if options.contains(&"-static") { &[cfa::PLT] } else { &[] };
        assert!(missing.iter().all(|kind| allowed.contains(kind)), "{options:?}: no rules of the kinds {missing:?}");
        assert!(count(&report, Kind::LoadedCfa) > 0, "the realigned function was not compared: {report}");
        let expected = [Kind::LoadedCfa, Kind::OtherRegister, Kind::LostRegister, Kind::FramePointerGivenBack];
        let others = report.disagreements.iter().filter(|found| found.kind.is_described());
        let others = others.filter(|found| !expected.contains(&found.kind)).count();
        assert!(others == 0 || options.contains(&"-static"), "{report}");
    }
}

/// The number of the rule of this sort that most rows have.
fn most_used(table: &UnwindTable, is_wanted: impl Fn(&Rule) -> bool) -> usize {
    let rows = |number: usize| table.rows.iter().filter(|row| usize::from(row.rule) == number).count();
    (0..table.rules.len()).filter(|number| is_wanted(&table.rules[*number])).max_by_key(|number| rows(*number)).unwrap()
}

fn assert_found(image: &Image, table: &UnwindTable, what: &str) {
    let report = compare(image, table, what).unwrap();
    assert!(!report.holds() && count(&report, Kind::Contradicted) > 0, "{what} was not found: {report}");
    let unknown = report.disagreements.iter().find(|found| found.verdict == Verdict::Fault).unwrap();
    assert!(!unknown.examples.is_empty());
}

#[test]
fn wrong_tables_are_found() {
    let (image, good) = table(&std::env::current_exe().unwrap());
    assert!(compare(&image, &good, "unchanged").unwrap().holds());

    let by_sp = most_used(&good, |rule| rule.cfa == cfa::SP && rule.cfa_offset > 8);
    let mut wrong = good.clone();
    wrong.rules[by_sp].cfa_offset += 8;
    assert_found(&image, &wrong, "a CFA that is 8 too high");

    let saves_fp = most_used(&good, |rule| rule.fp == fp::AT_CFA);
    let mut wrong = good.clone();
    wrong.rules[saves_fp].fp_offset -= 8;
    assert_found(&image, &wrong, "a frame pointer that is looked for 8 too low");

    let mut wrong = good.clone();
    wrong.rules[saves_fp].fp = fp::SAME;
    assert_found(&image, &wrong, "a saved frame pointer that is forgotten");

    let mut wrong = good.clone();
    let begins = |index: &usize| {
        let (row, next) = (good.rows[*index], good.rows[*index + 1]);
        usize::from(row.rule) == by_sp && row.low > 0 && next.low > row.low + 1
    };
    let rows: Vec<usize> = (0..good.rows.len() - 1).filter(begins).collect();
    // the first ones are of start-up code, which unwind information does not describe
    wrong.rows[rows[rows.len() / 2]].low += 1;
    assert_found(&image, &wrong, "a single row that begins a byte too late");
}

#[test]
fn a_row_that_is_refused_without_need_is_found() {
    let (image, mut table) = table(&std::env::current_exe().unwrap());
    let by_sp = most_used(&table, |rule| rule.cfa == cfa::SP && rule.cfa_offset > 8);
    table.rules[by_sp] = Rule::unsupported(abi::table::unsupported::CFA_EXPRESSION);
    let report = compare(&image, &table, "refused").unwrap();
    assert!(!report.holds() && count(&report, Kind::Refused) > 0, "{report}");
}

#[test]
fn a_go_program() {
    let Some(path) = program("gofmt").or_else(|| program("go")) else { return println!("SKIPPED: no Go") };
    let (image, mut table) = table(&path);
    let Some(report) = compare_go(&image, &table, "Go").unwrap() else { return println!("SKIPPED: gofmt is not Go") };
    assert!(report.holds(), "{report}");
    assert!(report.functions > 500 && report.described.comparisons > 50_000, "{report}");
    let differing = report.described.comparisons - report.described.equal;
    assert!(differing * 100 < report.described.comparisons, "{report}");

    let by_sp = most_used(&table, |rule| rule.cfa == cfa::SP && rule.cfa_offset > 8);
    table.rules[by_sp].cfa_offset += 8;
    let report = compare_go(&image, &table, "Go").unwrap().unwrap();
    assert!(!report.holds() && count(&report, Kind::Contradicted) > 0, "{report}");
}
