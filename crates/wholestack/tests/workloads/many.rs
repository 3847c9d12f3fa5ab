//! Source that keeps a compiler busy: many instances of generic functions.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

fn digest<K: Debug + Clone + Ord + std::hash::Hash, V: Debug + Clone>(items: &[(K, V)]) -> String {
    let map: HashMap<K, Vec<V>> = items.iter().cloned().fold(HashMap::new(), |mut map, (key, value)| {
        map.entry(key).or_insert_with(Vec::new).push(value);
        map
    });
    let sorted: BTreeMap<&K, usize> = map.iter().map(|(key, values)| (key, values.len())).collect();
    let mut lines: Vec<String> = sorted.iter().map(|(key, count)| format!("{key:?}={count}")).collect();
    lines.sort_by(|a, b| b.cmp(a));
    lines.join(";")
}

macro_rules! digests {
    ($($key:ty),*) => {
        [$(
            digest::<$key, u8>(&[]), digest::<$key, String>(&[]), digest::<$key, Vec<u16>>(&[]),
            digest::<$key, Option<i64>>(&[]), digest::<$key, (u8, char)>(&[]), digest::<$key, [u32; 4]>(&[]),
        )*]
    };
}

fn main() {
    let all = digests!(u8, String);
    println!("{}", all.len());
}
