//! What a comparison found, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use object::{Object, ObjectSymbol, SymbolKind};
use serde::Serialize;

use super::kinds::{Kind, Verdict};
use super::thread::Mode;

/// Examples that are kept of each kind.
const EXAMPLES: usize = 2;

/// Comparisons of one sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// A place in one [`Mode`], each.
    pub comparisons: u64,
    /// Of these, those in which both sides gave the same caller.
    pub equal: u64,
}

/// One place where the sides differ.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Example {
    /// Address in the file.
    pub address: u64,
    /// The function's symbol and the offset in it, if the file has symbols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// How the place was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Our answer, and the rule.
    pub ours: String,
    /// The judge's answer.
    pub judge: String,
    /// The row of `.eh_frame`, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eh_frame: Option<String>,
}

/// All disagreements of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Disagreement {
    /// The kind.
    pub kind: Kind,
    /// Who is right.
    pub verdict: Verdict,
    /// Why.
    pub why: &'static str,
    /// How many comparisons.
    pub count: u64,
    /// The first ones.
    pub examples: Vec<Example>,
}

/// One file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FileReport {
    /// The file.
    pub file: String,
    /// What it was compared with.
    pub judge: &'static str,
    /// Functions that were compared.
    pub functions: usize,
    /// FDEs that begin where another one does.
    pub functions_repeated: usize,
    /// FDEs of which another one covers the end.
    pub functions_cut: usize,
    /// FDEs without code in an executable segment.
    pub functions_outside: usize,
    /// Stretches of code in which neither side changes its rule.
    pub intervals: u64,
    /// Bytes of these.
    pub code_bytes: u64,
    /// Bytes in executable segments that no function covers.
    pub undescribed_bytes: u64,
    /// Comparisons within functions.
    pub described: Tally,
    /// Comparisons where no function is.
    pub undescribed: Tally,
    /// What differs.
    pub disagreements: Vec<Disagreement>,
    #[serde(skip)]
    found: BTreeMap<Kind, (u64, Vec<Example>)>,
}

impl FileReport {
    pub(crate) fn new(file: &str, judge: &'static str) -> FileReport {
        FileReport {
            file: file.to_owned(),
            judge,
            functions: 0,
            functions_repeated: 0,
            functions_cut: 0,
            functions_outside: 0,
            intervals: 0,
            code_bytes: 0,
            undescribed_bytes: 0,
            described: Tally::default(),
            undescribed: Tally::default(),
            disagreements: Vec::new(),
            found: BTreeMap::new(),
        }
    }

    /// Counts a disagreement; `example` is called if one is wanted.
    pub(crate) fn disagree(&mut self, kind: Kind, example: impl FnOnce() -> Example) {
        let (count, examples) = self.found.entry(kind).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(example());
        }
    }

    /// Names the examples.
    pub(crate) fn finish(mut self, file: &object::File<'_>) -> FileReport {
        for (kind, (count, mut examples)) in std::mem::take(&mut self.found) {
            for example in &mut examples {
                example.symbol = symbol(file, example.address);
            }
            let (verdict, why) = (kind.verdict(), kind.why());
            self.disagreements.push(Disagreement { kind, verdict, why, count, examples });
        }
        self.disagreements.sort_by_key(|found| (std::cmp::Reverse(found.verdict), std::cmp::Reverse(found.count)));
        self
    }

    /// Comparisons within functions that differ and are not explained.
    pub fn unexplained(&self) -> u64 {
        let faults = self.disagreements.iter().filter(|found| found.verdict == Verdict::Fault);
        faults.filter(|found| found.kind.is_described()).map(|found| found.count).sum()
    }

    /// Whether every difference is explained.
    pub fn holds(&self) -> bool {
        self.disagreements.iter().all(|found| found.verdict != Verdict::Fault)
    }
}

/// The function around an address.
fn symbol(file: &object::File<'_>, address: u64) -> Option<String> {
    let functions = || file.symbols().chain(file.dynamic_symbols()).filter(|s| s.kind() == SymbolKind::Text);
    let nearest = functions().filter(|s| s.address() <= address).max_by_key(|s| (s.address(), s.size()))?;
    let into = address - nearest.address();
    (into < nearest.size().max(1)).then(|| format!("{}+{into:#x}", nearest.name().unwrap_or("?")))
}

/// A part of a whole in per cent. Never rounded up to 100.
struct Share(u64, u64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Share(part, whole) = *self;
        if whole == 0 || part == whole {
            return f.write_str("100 %");
        }
        let millionths = u128::from(part) * 1_000_000 / u128::from(whole);
        write!(f, "{}.{:04} %", millionths / 10_000, millionths % 10_000)
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.file)?;
        let Tally { comparisons, equal } = self.described;
        writeln!(
            f,
            "  {} functions, {} intervals, {} bytes of code; {comparisons} comparisons with {}",
            self.functions, self.intervals, self.code_bytes, self.judge
        )?;
        let explained = comparisons.saturating_sub(self.unexplained());
        writeln!(f, "  equal {}, equal or explained {}", Share(equal, comparisons), Share(explained, comparisons))?;
        if self.undescribed.comparisons > 0 {
            let Tally { comparisons, equal } = self.undescribed;
            let bytes = self.undescribed_bytes;
            writeln!(
                f,
                "  {bytes} bytes without description: {comparisons} comparisons, equal {}",
                Share(equal, comparisons)
            )?;
        }
        if self.functions_repeated + self.functions_cut + self.functions_outside > 0 {
            let (repeated, cut, outside) = (self.functions_repeated, self.functions_cut, self.functions_outside);
            writeln!(
                f,
                "  FDEs left out: {repeated} begin where another does, {outside} of no code; {cut} are cut short"
            )?;
        }
        self.disagreements.iter().try_for_each(|found| write!(f, "{found}"))
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:>9}  {}: {} ({:?})", self.count, self.verdict.text(), self.why, self.kind)?;
        self.examples.iter().try_for_each(|example| write!(f, "{example}"))
    }
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const INDENT: &str = "             ";
        let symbol = self.symbol.as_deref().map(|symbol| format!(" {symbol}")).unwrap_or_default();
        let mode = match self.mode {
            Some(Mode::Interrupted) => ", interrupted",
            Some(Mode::Called) => ", in a call",
            None => "",
        };
        writeln!(f, "{INDENT}at {:#x}{symbol}{mode}", self.address)?;
        writeln!(f, "{INDENT}  ours   {}", self.ours)?;
        writeln!(f, "{INDENT}  judge  {}", self.judge)?;
        self.eh_frame.iter().try_for_each(|row| writeln!(f, "{INDENT}  row    {row}"))
    }
}

/// All files.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Report {
    /// Those that were compared.
    pub files: Vec<FileReport>,
    /// Files that nothing could judge, and why.
    pub not_judged: Vec<(String, String)>,
    /// Files that were to be compared and are not on this machine.
    pub missing: Vec<String>,
    /// Comparisons within functions, of all files.
    pub described: Tally,
    /// Comparisons that differ, by verdict.
    pub differing: BTreeMap<Verdict, u64>,
}

impl Report {
    /// Adds a file.
    pub fn add(&mut self, file: FileReport) {
        self.described.comparisons += file.described.comparisons;
        self.described.equal += file.described.equal;
        for found in &file.disagreements {
            *self.differing.entry(found.verdict).or_default() += found.count;
        }
        self.files.push(file);
    }

    /// Whether every difference is explained.
    pub fn holds(&self) -> bool {
        self.files.iter().all(FileReport::holds)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (file, why) in &self.not_judged {
            writeln!(f, "not judged: {file}: {why}")?;
        }
        for file in &self.missing {
            writeln!(f, "missing on this machine: {file}")?;
        }
        for (verdict, count) in &self.differing {
            writeln!(f, "{}: {count}", verdict.text())?;
        }
        let Tally { comparisons, equal } = self.described;
        let unexplained: u64 = self.files.iter().map(FileReport::unexplained).sum();
        let explained = Share(comparisons.saturating_sub(unexplained), comparisons);
        let count = self.files.len();
        writeln!(
            f,
            "{count} files, {comparisons} comparisons: equal {}, equal or explained {explained}",
            Share(equal, comparisons)
        )
    }
}
