//! Doors for the fuzz targets, of which nothing else knows.

use crate::cache::{self, CacheKey};
use crate::table::UnwindTable;

/// What the cache makes of a file that begins as it must and has the right checksum; `body` is the rest of it.
pub fn decode_table(key: &CacheKey, body: &[u8]) -> Option<UnwindTable> {
    cache::decode_body(key, body)
}

/// The rest of the file that the cache writes for a table.
pub fn encode_table(key: &CacheKey, table: &UnwindTable) -> Vec<u8> {
    cache::encode_body(key, table)
}
