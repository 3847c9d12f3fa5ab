//! Programs to name, and what other tools say of them.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use symbols::{Named, NativeNamer, ObjectFile};

pub const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline int twice(int x) {
    return x * 2 + rand();
}
static inline int thrice(int x) {
    return twice(x) + x / 3;
}
__attribute__((noinline)) int middle(int x) {
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += thrice(i) ^ sum;
    return sum;
}
__attribute__((noinline)) static int hidden(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    strcpy(copy, text);
    int result = puts(copy) + middle(copy[0]);
    free(copy);
    return result;
}
__attribute__((noinline)) int exported(int n) { return hidden(n > 1 ? "several" : "one"); }
int main(int argc, char **argv) {
    return exported(argc) + (int)strlen(argv[0]);
}
"#;

pub const CPP: &str = r#"
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace shapes {
template <typename T> struct Box {
    std::vector<T> items;
    void add(const T &item) { items.push_back(item); }
    __attribute__((noinline)) T sum() const {
        T total{};
        for (const auto &item : items) total += item;
        return total;
    }
};
struct Base {
    virtual ~Base() {}
    virtual int area(int) const = 0;
};
struct Square : Base {
    int side;
    explicit Square(int s) : side(s) {}
    int area(int k) const override { return side * side * k; }
};
} // namespace shapes
__attribute__((noinline)) int count(std::map<std::string, int> &words, const std::string &word) {
    return ++words[word];
}
int main(int argc, char **argv) {
    shapes::Box<int> ints;
    shapes::Box<std::string> strings;
    std::map<std::string, int> words;
    for (int i = 0; i < argc * 10; i++) {
        ints.add(i);
        strings.add(argv[0]);
        count(words, argv[i % argc]);
    }
    std::sort(ints.items.begin(), ints.items.end(), [](int a, int b) { return a > b; });
    shapes::Square square(argc);
    const shapes::Base &base = square;
    std::printf("%d %s %d\n", ints.sum(), strings.sum().c_str(), base.area(2));
}
"#;

pub const RUST: &str = r#"
use std::collections::HashMap;
struct Counter<T> { seen: HashMap<T, u32> }
impl<T: std::hash::Hash + Eq> Counter<T> {
    #[inline(never)]
    fn add(&mut self, item: T) -> u32 {
        let count = self.seen.entry(item).or_insert(0);
        *count += 1;
        *count
    }
}
#[inline(never)]
fn sorted(words: &[String]) -> Vec<&str> {
    let mut all: Vec<&str> = words.iter().map(|word| word.trim()).collect();
    all.sort_by_key(|word| word.len());
    all
}
fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut counter = Counter { seen: HashMap::new() };
    for word in sorted(&words) {
        println!("{word} {}", counter.add(word.to_owned()));
    }
}
"#;

/// Runs a command that must succeed; its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles `source` in `directory` to `program`.
pub fn compile(directory: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let (compiler, name) = match source {
        CPP => ("g++", "program.cc"),
        RUST => ("rustc", "program.rs"),
        _ => ("cc", "program.c"),
    };
    let (input, output) = (directory.join(name), directory.join("program"));
    std::fs::write(&input, source).unwrap();
    let mut arguments = vec![input.to_str().unwrap(), "-o", output.to_str().unwrap()];
    arguments.extend(flags);
    run(compiler, &arguments);
    output
}

/// `PT_LOAD`s as readelf shows them: offset, address, size in the file, executable.
pub fn segments(path: &Path) -> Vec<(u64, u64, u64, bool)> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    run("readelf", &["-lW", path.to_str().unwrap()])
        .lines()
        .filter_map(|line| line.trim().strip_prefix("LOAD"))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (hex(words[0]), hex(words[1]), hex(words[3]), line.contains(" E ") || line.contains("R E"))
        })
        .collect()
}

/// The file offset of an address.
pub fn offset_of(segments: &[(u64, u64, u64, bool)], address: u64) -> u64 {
    let holds = |segment: &&(u64, u64, u64, bool)| (segment.1..segment.1 + segment.2).contains(&address);
    let segment = segments.iter().find(holds).unwrap_or_else(|| panic!("{address:#x} is in no segment"));
    address - segment.1 + segment.0
}

/// Functions with a size, as nm shows them: names and the largest size by address.
pub fn functions(path: &Path, flags: &[&str]) -> BTreeMap<u64, (Vec<String>, u64)> {
    let mut arguments = vec!["-S", "--defined-only"];
    arguments.extend(flags);
    arguments.push(path.to_str().unwrap());
    let mut found: BTreeMap<u64, (Vec<String>, u64)> = BTreeMap::new();
    for line in run("nm", &arguments).lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        if let [address, size, kind, name] = words[..]
            && "tTwWi".contains(kind)
        {
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            let entry = found.entry(number(address)).or_default();
            entry.0.push(name.split('@').next().unwrap().to_owned());
            entry.1 = entry.1.max(number(size));
        }
    }
    found
}

/// The address range of a section.
pub fn section(path: &Path, name: &str) -> std::ops::Range<u64> {
    let text = run("readelf", &["-SW", path.to_str().unwrap()]);
    let line = text.lines().find(|line| line.split_whitespace().any(|word| word == name)).expect("no such section");
    let words: Vec<&str> = line.split(name).nth(1).unwrap().split_whitespace().collect();
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    number(words[1])..number(words[1]) + number(words[3])
}

/// Names addresses of a file, by what it holds itself.
pub fn name_all(path: &Path, addresses: &[u64]) -> Vec<Named> {
    let segments = segments(path);
    let offsets: Vec<u64> = addresses.iter().map(|address| offset_of(&segments, *address)).collect();
    NativeNamer::with_debug_directories(Vec::new()).name(&ObjectFile::open(path).unwrap(), &offsets).named
}

/// The name of the function as it was compiled.
pub fn outer(named: &Named) -> &str {
    named.functions.last().map_or("", |function| &function.name)
}
