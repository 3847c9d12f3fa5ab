//! A build: many processes of a real kind, which start others and end.

use crate::storm::Watched;
use crate::support::build::Workshop;
use crate::support::folded::{End, Stack, total};
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::workload::Truth;

/// Sources of the project.
const FILES: usize = 60;
/// Programs of the project, each linked from some of them.
const PROGRAMS: usize = 10;

/// A source with work for a compiler: functions that call one another, loops and structures.
fn source(number: usize) -> String {
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
    for function in 0..30 {
        let (name, before) = (format!("f{number}_{function}"), function.max(1) - 1);
        text += &format!("struct s{function} {{ long a[{}]; char b[{}]; double c; }};\n", function + 2, function + 7);
        if function == 0 {
            text += &format!("long {name}(long n, void *p) {{ return n + (long)strlen((char *)p); }}\n");
            continue;
        }
        text += &format!(
            "long {name}(long n, void *p) {{\n  struct s{function} s;\n  memset(&s, 0, sizeof s);\n  \
             for (long i = 0; i < n; i++) {{\n    s.a[i % {}] += f{number}_{before}(i / 2, p) * {function};\n    \
             if (s.a[0] > 1000) s.c += s.b[i % {}] / 3.0;\n    else printf(\"%ld %f\\n\", s.a[i % {}], s.c);\n  }}\n  \
             return s.a[1] + (long)s.c;\n}}\n",
            function + 2,
            function + 7,
            function + 2
        );
    }
    if number.is_multiple_of(FILES / PROGRAMS) {
        text += &format!("int main(int c, char **v) {{ return (int)f{number}_29(c, v[0]); }}\n");
    }
    text
}

fn makefile() -> String {
    let each = FILES / PROGRAMS;
    let names: Vec<String> = (0..PROGRAMS).map(|program| format!("program{program}")).collect();
    let mut text = format!("all: {}\n", names.join(" "));
    for (program, name) in names.iter().enumerate() {
        let objects: Vec<String> = (program * each..(program + 1) * each).map(|file| format!("file{file}.o")).collect();
        text += &format!("{name}: {}\n\tcc -o $@ $^\n", objects.join(" "));
    }
    text + "%.o: %.c\n\tcc -O1 -g -c -o $@ $<\n"
}

#[test]
fn make_with_four_jobs() {
    needs!("cc", "make", "as", "ld");
    let shop = Workshop::new();
    let usage = shop.c("usage", "usage.c", &[]);
    for number in 0..FILES {
        shop.write(&format!("file{number}.c"), &source(number));
    }
    shop.write("Makefile", &makefile());
    let project = shop.path("");
    let command = [usage.as_os_str(), "make".as_ref(), "-j4".as_ref(), "-C".as_ref(), project.as_os_str()];
    let recorded = Watched::command(499, &command).finish();
    assert!(recorded.status.success(), "{}", recorded.summary);
    let built = (0..PROGRAMS).filter(|program| shop.path(&format!("program{program}")).is_file()).count();
    assert_eq!(built, PROGRAMS, "{}", recorded.summary);
    let truth = Truth::parse(&recorded.stdout);
    let all: Vec<&Stack> = recorded.stacks.iter().collect();
    let whole = |stack: &Stack| (stack.end() == End::Whole).then(String::new);
    let mut judge = Judge::among(&recorded, all, "make -j4", 499)
        .losing_at_most(0.01)
        .samples_for(truth.number("children_s") + truth.cpu)
        .chains(&Truth::default(), whole);
    for name in ["make", "cc", "cc1", "as", "ld"] {
        let samples = total(recorded.of(name));
        println!("LIVE make -j4: {samples} samples of {name}");
        // one run of each takes some milliseconds at least, and there are many
        judge.require(samples > 0, format!("no sample of {name}"));
    }
    judge.end();
}
