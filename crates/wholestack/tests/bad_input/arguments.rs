//! Command lines that are wrong: found before anything is touched, also without any rights.

use crate::common::open_directory;
use crate::common::recorder::run;

#[track_caller]
fn refused(arguments: &[&str], told: &str) {
    let directory = open_directory();
    let arguments: Vec<&str> = ["record"].iter().chain(arguments).copied().collect();
    run(directory.path(), &arguments).expect(2).told(told);
    assert!(super::common::names_in(directory.path()).is_empty());
}

#[test]
fn rates() {
    refused(&["-F", "0"], "0 is not in 1..=10000");
    refused(&["-F", "10001"], "10001 is not in 1..=10000");
    refused(&["-F", "-5"], "-5");
    refused(&["-F", "fast"], "fast");
}

#[test]
fn durations() {
    refused(&["-d", "0"], "must be more than 0");
    refused(&["-d", "0ms"], "must be more than 0");
    refused(&["-d", "soon"], "give seconds, or 500ms, 10s, 5m, 1h");
    refused(&["-d", "5 parsecs"], "one of ms, s, m, h");
    refused(&["-d", "99999999999999999999999999h"], "less than centuries");
}

#[test]
fn processes() {
    refused(&["-p", "0"], "0 is not in 1..");
    refused(&["-p", "4294967296"], "4294967296 is not in 1..");
    refused(&["-p", "bash"], "bash");
    refused(&["-p", "1", "--", "true"], "cannot be used with");
}

#[test]
fn outputs() {
    refused(&["-o", "profile.xyz"], "it should end in one of: .html");
    refused(&["-o", "profile"], "it should end in one of: .html");
    refused(&["-o", ""], "");
    refused(&["-o", "a.html", "-o", "a.html"], "given twice");
    refused(&["-o", "a.html", "-o", "./a.html"], "given twice");
    refused(&["-o", "-", "-o", "-"], "given twice");
}

#[test]
fn subcommands() {
    let directory = open_directory();
    run(directory.path(), &[] as &[&str]).expect(2).told("Usage");
    run(directory.path(), &["recrod"]).expect(2).told("record");
    // the launcher is for `record` alone
    run(directory.path(), &["launch", "true"]).expect(2).told("own use");
}
