//! Whole stacks of running programs, against framehop. Needs root.

use std::ffi::OsString;

use verify::live::{ProgramReport, compare_command};

fn compared(script: &str) -> Option<ProgramReport> {
    if !rustix::process::geteuid().is_root() && std::env::var_os("WHOLESTACK_REQUIRE_LIVE").is_none() {
        println!("SKIPPED: recording needs root");
        return None;
    }
    let command = ["sh", "-c", script].map(OsString::from);
    Some(compare_command(&command, 299, 20).expect("a recording"))
}

/// Every stack is equal, or differs where framehop does not support the row; and the kernel's walk is that of user
/// space over the same memory.
fn judge(report: &ProgramReport, samples: u64) {
    println!("{report}");
    assert!(report.samples >= samples, "{} samples", report.samples);
    assert_eq!((report.faults(), report.kernel_differs), (0, 0));
    let equal = report.equal + report.equal_in_copy;
    assert!(equal * 100 >= report.samples * 95, "{equal} of {} are equal", report.samples);
}

#[test]
fn a_compiler() {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, object) = (directory.path().join("many.c"), directory.path().join("many.o"));
    let function = |n: u32| {
        format!("int f{n}(int *a, int n) {{ int s = 0; for (int i = 0; i < n; i++) s += a[i] * {n} ^ i; return s; }}\n")
    };
    std::fs::write(&source, (0..3000).map(function).collect::<String>()).expect("written");
    let Some(report) = compared(&format!("cc -O2 -c -o {} {}", object.display(), source.display())) else { return };
    judge(&report, 100);
}

#[test]
fn interpreters_and_tools() {
    let script = "perl -e 'my %h; $h{$_ * 7919 % 10007} .= reverse $_ for 1..1500000; print scalar keys %h' && \
                  find / -xdev -name 'x*y' 2>&1 | sort | tail -n 1";
    let Some(report) = compared(script) else { return };
    judge(&report, 100);
}
