//! Naming offsets of a file.

use symbols::{MAX_NAME, NativeNamer, ObjectFile};

/// Names offsets of a file that nobody can see but us.
pub fn check(bytes: &[u8], offsets: &[u64]) {
    let file = ObjectFile::new(crate::memory_file::with(bytes), "/nonexistent/file".into(), None);
    let named = NativeNamer::with_debug_directories(Vec::new()).name(&file, offsets).named;
    assert_eq!(named.len(), offsets.len());
    for function in named.iter().flat_map(|named| &named.functions) {
        assert!(function.name.len() <= MAX_NAME + "…@plt".len(), "{}", function.name.len());
    }
    for named in named.iter().filter(|named| !named.functions.is_empty()) {
        let last = named.functions.len() - 1;
        assert!(named.functions.iter().enumerate().all(|(at, function)| function.inlined == (at != last)));
    }
}
