//! Names of kernel addresses, from `/proc/kallsyms`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use crate::Reason;

const PATH: &str = "/proc/kallsyms";
/// The most that is read, in bytes; the largest kernels have some 20 MB.
const MAX_BYTES: u64 = 512 << 20;
/// How far a symbol reaches at most, in bytes. The list has no sizes: each symbol ends where the next begins, and
/// behind the last of the kernel or a module there may be nothing for long.
const MAX_REACH: u64 = 1 << 20;
/// The longest name that is kept, in bytes; the kernel's own limit is 512.
const MAX_NAME: usize = 4096;

/// The name of a kernel address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelName<'a> {
    /// Name of the function, as the kernel has it.
    pub name: &'a str,
    /// Its module in brackets, `[nf_tables]`, or `[bpf]`; `None` for the kernel itself.
    pub module: Option<&'a str>,
}

/// Names kernel addresses. Reads the list once, at the first question.
#[derive(Debug, Default)]
pub struct KernelNamer {
    list: Option<Result<List, Reason>>,
}

impl KernelNamer {
    /// A namer that has read nothing yet.
    pub fn new() -> KernelNamer {
        KernelNamer::default()
    }

    /// The names of addresses, one result each; `None` for what is no code of the kernel. If nothing has a name,
    /// [`reason`](Self::reason) says why.
    pub fn name(&mut self, addresses: &[u64]) -> Vec<Option<KernelName<'_>>> {
        let list = self.list().as_ref().ok();
        addresses.iter().map(|address| list.and_then(|list| list.name(*address))).collect()
    }

    /// Why no address has a name; `None` if the list was read.
    pub fn reason(&mut self) -> Option<Reason> {
        self.list().as_ref().err().cloned()
    }

    /// Forgets the list, so that the next question reads it anew: modules and BPF programs come and go.
    pub fn refresh(&mut self) {
        self.list = None;
    }

    fn list(&mut self) -> &Result<List, Reason> {
        self.list.get_or_insert_with(|| {
            let file = File::open(PATH).map_err(|error| Reason::KernelUnreadable(error.to_string()))?;
            List::read(file.take(MAX_BYTES))
        })
    }
}

/// The list: functions, and where anything else begins.
#[derive(Debug, Default)]
struct List {
    text: String,
    modules: Vec<String>,
    /// By address; one for each.
    symbols: Vec<Symbol>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    /// Where the name is in the text. Its length is 0 for what is no function.
    name: (u32, u16),
    /// Position in the modules, plus 1.
    module: u16,
    rank: u8,
}

impl List {
    /// Parses lines of `address type name [module]`.
    fn read(from: impl Read) -> Result<List, Reason> {
        let (mut list, mut line, mut hidden) = (List::default(), Vec::new(), 0u64);
        let mut from = BufReader::with_capacity(1 << 16, from);
        loop {
            line.clear();
            // without a bound, one line without an end would take all memory
            let mut part = from.by_ref().take(4 * MAX_NAME as u64);
            if part.read_until(b'\n', &mut line).map_err(|error| Reason::KernelUnreadable(error.to_string()))? == 0 {
                break;
            }
            let Some(entry) = parse(&line) else { continue };
            if entry.address == 0 {
                hidden += 1;
                continue;
            }
            list.add(&entry);
        }
        list.symbols.sort_by_key(|symbol| (symbol.address, symbol.rank));
        list.symbols.dedup_by_key(|symbol| symbol.address);
        match list.symbols.is_empty() {
            false => Ok(list),
            true if hidden > 0 => Err(Reason::KernelHidden),
            true => Err(Reason::KernelUnreadable("it is empty".to_owned())),
        }
    }

    fn add(&mut self, entry: &Entry<'_>) {
        let module = entry.module.map_or(0, |module| self.module(module));
        // other symbols only end the functions before them
        let name = if entry.is_function { &entry.name[..entry.name.len().min(MAX_NAME)] } else { &[] };
        let name = String::from_utf8_lossy(name);
        let Ok(at) = u32::try_from(self.text.len()) else { return };
        self.text.push_str(&name);
        let rank = if entry.is_function { entry.rank() } else { u8::MAX };
        let length = name.len().min(usize::from(u16::MAX)) as u16;
        self.symbols.push(Symbol { address: entry.address, name: (at, length), module, rank });
    }

    fn module(&mut self, name: &[u8]) -> u16 {
        let name = String::from_utf8_lossy(name);
        // the list has the symbols of a module together
        if self.modules.last().is_none_or(|last| *last != name) && self.modules.len() < usize::from(u16::MAX) {
            self.modules.push(name.into_owned());
        }
        self.modules.len() as u16
    }

    fn name(&self, address: u64) -> Option<KernelName<'_>> {
        let next = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(next.checked_sub(1)?)?;
        if symbol.name.1 == 0 || address - symbol.address >= MAX_REACH {
            return None;
        }
        let start = symbol.name.0 as usize;
        let name = self.text.get(start..start + usize::from(symbol.name.1))?;
        let module = usize::from(symbol.module).checked_sub(1).and_then(|at| self.modules.get(at));
        Some(KernelName { name, module: module.map(String::as_str) })
    }
}

/// A line of the list.
struct Entry<'a> {
    address: u64,
    is_function: bool,
    is_weak: bool,
    name: &'a [u8],
    module: Option<&'a [u8]>,
}

impl Entry<'_> {
    /// Which of several names of one address is preferred: the smallest.
    fn rank(&self) -> u8 {
        let underscores = self.name.iter().take_while(|byte| **byte == b'_').count().min(15) as u8;
        u8::from(self.is_weak) << 4 | underscores
    }
}

fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    let module = words.next().filter(|module| module.starts_with(b"[") && module.ends_with(b"]"));
    let is_weak = matches!(kind, b"w" | b"W");
    Some(Entry { address, is_function: is_weak || matches!(kind, b"t" | b"T"), is_weak, name, module })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const LINES: &str = "0000000000000000 A fixed_percpu_data\n\
        ffffffff81000000 T _stext\n\
        ffffffff81000000 T startup_64\n\
        ffffffff81000040 t __do_one\n\
        ffffffff81000040 W do_one\n\
        ffffffff81000080 T last\n\
        ffffffff81000100 D data\n\
        ffffffffc0000000 t nf_hook\t[nf_tables]\n\
        ffffffffc0000040 T nf_other\t[nf_tables]\n\
        ffffffffc0100000 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]\n";

    fn name(list: &List, address: u64) -> Option<(&str, Option<&str>)> {
        list.name(address).map(|found| (found.name, found.module))
    }

    #[test]
    fn lines_become_names() {
        let list = List::read(LINES.as_bytes()).unwrap();
        assert_eq!(name(&list, 0x1000), None);
        assert_eq!(name(&list, 0xffffffff81000000), Some(("startup_64", None)));
        assert_eq!(name(&list, 0xffffffff81000041), Some(("__do_one", None)));
        assert_eq!(name(&list, 0xffffffff810000ff), Some(("last", None)));
        assert_eq!(name(&list, 0xffffffff81000100), None);
        assert_eq!(name(&list, 0xffffffffc0000050), Some(("nf_other", Some("[nf_tables]"))));
        assert_eq!(name(&list, 0xffffffffc0100004), Some(("bpf_prog_6deef7357e7b4530_sd_fw", Some("[bpf]"))));
        assert_eq!(name(&list, 0xffffffffc0100000 + MAX_REACH), None);
    }

    #[test]
    fn hidden_addresses_are_said() {
        let hidden: String = LINES.lines().map(|line| format!("0000000000000000{}\n", &line[16..])).collect();
        assert_eq!(List::read(hidden.as_bytes()).unwrap_err(), Reason::KernelHidden);
        assert!(Reason::KernelHidden.to_string().contains("kernel.kptr_restrict"));
        assert!(matches!(List::read(&b"\n\n"[..]), Err(Reason::KernelUnreadable(_))));
    }

    /// Each function of the running kernel gets one of the names that the kernel has at its address.
    #[test]
    fn the_running_kernel() {
        let text = std::fs::read_to_string(PATH).unwrap();
        let mut names: HashMap<u64, Vec<&str>> = HashMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if "tTwW".contains(words[1]) {
                names.entry(u64::from_str_radix(words[0], 16).unwrap()).or_default().push(words[2]);
            }
        }
        assert!(names.len() > 10_000, "these tests need root to see kernel addresses");
        let addresses: Vec<u64> = names.keys().copied().collect();
        let mut namer = KernelNamer::new();
        assert_eq!(namer.reason(), None);
        for (address, found) in addresses.iter().zip(namer.name(&addresses)) {
            let found = found.unwrap_or_else(|| panic!("no name for {address:#x}"));
            assert!(names[address].contains(&found.name), "{address:#x}: {found:?}, not {:?}", names[address]);
        }
        assert_eq!(namer.name(&[0, 0x5555_5555_5555]), [None, None]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400), address: u64) {
            if let Ok(list) = List::read(&bytes[..]) {
                let _ = list.name(address);
            }
        }

        #[test]
        fn damaged_lines_do_no_harm(at in 0..LINES.len(), byte: u8, address: u64) {
            let mut bytes = LINES.as_bytes().to_vec();
            bytes[at] = byte;
            let list = List::read(&bytes[..]).unwrap();
            let _ = (list.name(address), list.name(address | 0xffffffff81000000));
        }
    }
}
