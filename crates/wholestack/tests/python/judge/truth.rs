//! What workloads tell of themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::label::Python;

/// A function and the lines of it in which a frame may be.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "(String, String, Vec<u32>, u32)")]
pub(crate) struct Place {
    pub(crate) name: String,
    /// The file's path.
    pub(crate) file: String,
    /// 0 where the frame may have none.
    pub(crate) lines: Vec<u32>,
    pub(crate) first_line: u32,
}

impl From<(String, String, Vec<u32>, u32)> for Place {
    fn from((name, file, lines, first_line): (String, String, Vec<u32>, u32)) -> Place {
        Place { name, file, lines, first_line }
    }
}

impl Place {
    /// Whether a frame shows this function, as far as it shows it.
    pub(crate) fn is_of(&self, shown: &Python) -> bool {
        let is_file = match shown.first_line {
            Some(first_line) => self.file == shown.file && self.first_line == first_line,
            None => last_part(&self.file) == shown.file,
        };
        self.name == shown.name && is_file
    }

    /// Whether a frame shows this function, in one of these lines if lines are shown.
    pub(crate) fn has(&self, shown: &Python, with_lines: bool) -> bool {
        self.is_of(shown) && is_among(&self.lines, shown.line, with_lines)
    }
}

/// What is in angle brackets is no path: `<frozen importlib._bootstrap>`.
fn last_part(path: &str) -> &str {
    let is_whole = (path.starts_with('<') && path.ends_with('>')) || path.ends_with('/');
    path.rsplit('/').next().filter(|_| !is_whole).unwrap_or(path)
}

/// Whether a line is shown where it should be, and is one of these.
pub(crate) fn is_among(lines: &[u32], shown: Option<u32>, with_lines: bool) -> bool {
    match shown {
        Some(line) => with_lines && lines.contains(&line),
        None => !with_lines || lines.contains(&0),
    }
}

/// A thread that stays in one stack.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Thread {
    /// Its name, as the kernel has it.
    pub(crate) thread: String,
    pub(crate) case: String,
    /// Outermost first.
    pub(crate) chain: Vec<Place>,
    /// Which of the tails follow; without, anything may.
    pub(crate) tails: Option<String>,
}

/// What may follow a chain, outermost first; after `None`, which is the last, anything.
pub(crate) type Tail = Vec<Option<Place>>;

/// The CPU time of a function and of lines in it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Share {
    pub(crate) block: Place,
    pub(crate) seconds: f64,
    pub(crate) lines: Vec<LineShare>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LineShare {
    pub(crate) lines: Vec<u32>,
    pub(crate) seconds: f64,
}

/// A call: the caller and its line, if there is a caller, and the callee; numbers of functions.
pub(crate) type Call = (i64, Option<u32>, usize);

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Version {
        version: String,
    },
    /// The two functions of calls that C is in between, and of those that it is not from 3.11 on.
    Between {
        through_c: BTreeSet<(String, String)>,
        direct: BTreeSet<(String, String)>,
    },
    Tails {
        tails: BTreeMap<String, Vec<Tail>>,
    },
    Thread(Thread),
    Burnt {
        burnt: BTreeMap<String, f64>,
    },
    Calls {
        functions: Vec<Place>,
        calls: Vec<Call>,
        #[serde(default)]
        makers: Vec<(usize, usize)>,
    },
    End {
        cpu: BTreeMap<String, f64>,
        #[serde(default)]
        shares: Vec<Share>,
        #[serde(default)]
        lacking: Vec<String>,
    },
}

/// Everything that a workload has told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// As in `3.13.5`.
    pub(crate) version: String,
    pub(crate) threads: BTreeMap<String, Thread>,
    /// What may follow a chain, by the name of the kind.
    pub(crate) tails: BTreeMap<String, Vec<Tail>>,
    /// Pairs of functions of which the one calls the other by way of C, and without C from 3.11 on.
    pub(crate) through_c: BTreeSet<(String, String)>,
    pub(crate) direct: BTreeSet<(String, String)>,
    pub(crate) functions: Vec<Place>,
    pub(crate) calls: Vec<Call>,
    /// Who makes which generator, whose code it runs for that, up to the end of its first line.
    pub(crate) makers: Vec<(usize, usize)>,
    /// CPU seconds of threads, by their names.
    pub(crate) cpu: BTreeMap<String, f64>,
    pub(crate) shares: Vec<Share>,
    /// Modules of cases that the interpreter lacks.
    pub(crate) lacking: Vec<String>,
    pub(crate) is_over: bool,
}

impl Told {
    /// Takes in a line of a workload's output.
    pub(crate) fn hear(&mut self, line: &str) {
        match serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")) {
            Line::Version { version } => self.version = version,
            Line::Tails { tails } => self.tails.extend(tails),
            Line::Thread(thread) => _ = self.threads.insert(thread.thread.clone(), thread),
            Line::Between { through_c, direct } => {
                self.through_c.extend(through_c);
                self.direct.extend(direct);
            }
            // processes one after the other may use the same name
            Line::Burnt { burnt } => {
                burnt.into_iter().for_each(|(name, seconds)| *self.cpu.entry(name).or_default() += seconds)
            }
            Line::Calls { functions, calls, makers } => {
                (self.functions, self.calls, self.makers) = (functions, calls, makers)
            }
            Line::End { cpu, shares, lacking } => {
                self.cpu.extend(cpu);
                self.shares.extend(shares);
                self.lacking.extend(lacking);
                self.is_over = true;
            }
        }
    }

    /// All of an output; lines that are no JSON are not for us.
    pub(crate) fn all(output: &str) -> Told {
        let mut told = Told::default();
        output.lines().filter(|line| line.starts_with('{')).for_each(|line| told.hear(line));
        told
    }

    /// The 13 in `3.13.5`.
    pub(crate) fn minor(&self) -> u32 {
        self.version.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or_default()
    }

    /// CPU seconds of all threads.
    pub(crate) fn seconds(&self) -> f64 {
        self.cpu.values().sum()
    }
}
