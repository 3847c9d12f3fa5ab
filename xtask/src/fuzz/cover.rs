//! Which inputs to keep: those that together reach most, for their size.

use std::collections::HashSet;
use std::path::PathBuf;

/// An input and what it reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Numbers of edges.
    pub edges: Vec<u32>,
}

/// What a file costs beside its bytes, in bytes: many small files are no small corpus.
const PER_FILE: u64 = 256;

/// Reads the control file of a merge (libFuzzer's FuzzerMerge.h): the number of files, the number of those that are not
/// asked about, the paths, then for each file a line `STARTED index size` and, if it did not crash, `FT index edges`.
///
/// The inputs that are not asked about come first.
pub fn read(control: &str) -> Option<(Vec<Input>, Vec<Input>)> {
    let mut lines = control.lines();
    let (count, first): (usize, usize) = (lines.next()?.parse().ok()?, lines.next()?.parse().ok()?);
    let paths = lines.by_ref().take(count).map(PathBuf::from);
    let mut inputs: Vec<Input> = paths.map(|path| Input { path, size: 0, edges: Vec::new() }).collect();
    for line in lines {
        let mut words = line.split_whitespace();
        let (kind, index) = (words.next()?, words.next()?.parse::<usize>().ok()?);
        let input = inputs.get_mut(index)?;
        match kind {
            "STARTED" => input.size = words.next()?.parse().ok()?,
            "FT" => input.edges = words.map(|edge| edge.parse().ok()).collect::<Option<_>>()?,
            _ => {}
        }
    }
    let found = inputs.split_off(first.min(inputs.len()));
    Some((inputs, found))
}

/// Of `found`, the inputs that add most to what `named` reach for what they cost, one after the other, until nothing is
/// added or the next does not fit into `bytes`.
pub fn choose(named: &[Input], mut found: Vec<Input>, bytes: u64) -> Vec<Input> {
    let mut reached: HashSet<u32> = named.iter().flat_map(|input| &input.edges).copied().collect();
    let mut chosen = Vec::new();
    let mut left = bytes;
    loop {
        found.iter_mut().for_each(|input| input.edges.retain(|edge| !reached.contains(edge)));
        found.retain(|input| !input.edges.is_empty() && cost(input) <= left);
        let worth = |input: &Input| input.edges.len() as f64 / cost(input) as f64;
        let best = (0..found.len()).max_by(|a, b| worth(&found[*a]).total_cmp(&worth(&found[*b])));
        let Some(best) = best.map(|index| found.swap_remove(index)) else { return chosen };
        left -= cost(&best);
        reached.extend(&best.edges);
        chosen.push(best);
    }
}

fn cost(input: &Input) -> u64 {
    input.size + PER_FILE
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: &str = "4\n1\nseeds/named\nfinds/a\nfinds/b b\nfinds/c\n\
        STARTED 0 10\nFT 0 1 2\nCOV 0 1 2\n\
        STARTED 1 100\nFT 1 1 2 3\nCOV 1 3\n\
        STARTED 2 20\nFT 2 3 4 5\nCOV 2 4 5\n\
        STARTED 3 7\n";

    #[test]
    fn a_control_file() {
        let (named, found) = read(CONTROL).unwrap();
        assert_eq!(named, [Input { path: "seeds/named".into(), size: 10, edges: vec![1, 2] }]);
        assert_eq!(found[1], Input { path: "finds/b b".into(), size: 20, edges: vec![3, 4, 5] });
        assert_eq!(found[2].edges, [0; 0], "it crashed");
        for bad in ["", "4\n", "x\n1\n", "1\n0\nfile\nSTARTED 7 1\n", "1\n0\nfile\nFT 0 many\n"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn those_that_add_nothing_are_left_out() {
        let (named, found) = read(CONTROL).unwrap();
        let paths = |chosen: Vec<Input>| chosen.into_iter().map(|input| input.path).collect::<Vec<_>>();
        assert_eq!(paths(choose(&named, found.clone(), 1000)), [PathBuf::from("finds/b b")]);
        assert_eq!(paths(choose(&[], found.clone(), 1000)), ["finds/b b", "finds/a"].map(PathBuf::from));
        assert!(choose(&named, found, 20 + PER_FILE - 1).is_empty(), "it does not fit");
    }

    #[test]
    fn what_reaches_more_for_its_size_comes_first() {
        let input = |path: &str, size, edges: &[u32]| Input { path: path.into(), size, edges: edges.to_vec() };
        let found = vec![input("large", 5000, &[1, 2, 3, 4]), input("small", 10, &[1, 2]), input("other", 10, &[3])];
        let chosen = choose(&[], found, 6000);
        assert_eq!(chosen.iter().map(|input| input.path.as_os_str()).collect::<Vec<_>>(), ["small", "other", "large"]);
        assert_eq!(chosen[2].edges, [4]);
    }
}
