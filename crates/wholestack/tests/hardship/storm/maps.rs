//! What another process's sampler knows of processes: the keys of its BPF maps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use abi::process::place::IN_FILE;
use aya::Pod;
use aya::maps::{HashMap, Map, MapData, loaded_maps};

use crate::common::HANG;
use crate::common::bpf::held_by;
use crate::common::target::all_processes;

/// Ids of processes by the name of the map whose keys have them.
pub(crate) type Known = BTreeMap<String, BTreeSet<u32>>;

/// Every process that a recorder's maps have.
pub(crate) fn known_to(recorder: u32) -> Known {
    let held = held_by(recorder).maps;
    let mut known = Known::new();
    // a map that vanishes while it is listed is an error of the listing
    for info in loaded_maps().flatten().filter(|info| held.contains(&info.id())) {
        let (Some(name), Ok(map)) = (info.name_as_str().map(str::to_owned), MapData::from_id(info.id())) else {
            continue;
        };
        let pids = match name.as_str() {
            "processes" => pids::<u32, [u8; 16]>(Map::HashMap(map), |key| *key),
            "stale" => pids::<u32, u64>(Map::HashMap(map), |key| *key),
            "followed" => pids::<u32, u32>(Map::HashMap(map), |key| *key),
            "counts_0" | "counts_1" => pids::<[u32; 8], u64>(Map::HashMap(map), |key| key[0]),
            // code in a file is nobody's
            "exits" => {
                pids::<[u32; 4], [u8; 32]>(Map::LruHashMap(map), |key| if key[1] & IN_FILE == 0 { key[0] } else { 0 })
            }
            _ => continue,
        };
        known.insert(name, pids);
    }
    known
}

/// Keys of a map that may change meanwhile: then a walk over it may begin again, so it goes only so far.
fn pids<K: Pod, V: Pod>(map: Map, pid: impl Fn(&K) -> u32) -> BTreeSet<u32> {
    const MOST: usize = 1 << 20;
    let map = HashMap::<MapData, K, V>::try_from(map).expect("keys and values of the sizes in `abi`");
    let pids: BTreeSet<u32> = map.keys().take(MOST).flatten().map(|key| pid(&key)).collect();
    pids.into_iter().filter(|pid| *pid != 0).collect()
}

/// Waits until a recorder that goes on has forgotten all processes that are over now.
pub(crate) fn wait_until_forgotten(recorder: u32) {
    let first = known_to(recorder);
    assert!(first.contains_key("processes") && first.contains_key("stale"), "{:?}", first.keys());
    let alive: BTreeSet<u32> = all_processes().into_iter().collect();
    let over: BTreeSet<u32> = first.values().flatten().copied().filter(|pid| !alive.contains(pid)).collect();
    let started = Instant::now();
    loop {
        let alive: BTreeSet<u32> = all_processes().into_iter().collect();
        let mut left = known_to(recorder);
        assert!(left.contains_key("processes"), "the recorder has ended");
        left.values_mut().for_each(|pids| pids.retain(|pid| over.contains(pid) && !alive.contains(pid)));
        left.retain(|_, pids| !pids.is_empty());
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < HANG / 4, "still known: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
