//! A table as bytes, and back, without trust.
//!
//! ```text
//!   magic, version, checksum of all that follows,
//!   architecture, kind of the identity, file size, length of the identity, first page, numbers of pages, rows and rules,
//!   statistics, identity, rules, pages, rows
//! ```
//! All numbers are little-endian.

use abi::table::{PAGE_MASK, Page, Row, Rule, cfa, fp, ra};

use crate::architecture::Architecture;
use crate::cache::CacheKey;
use crate::limits::{MAX_BUILD_ID, MAX_PAGES, MAX_ROWS, MAX_RULES};
use crate::stats::TableStats;
use crate::table::UnwindTable;

const MAGIC: [u8; 8] = *b"wstable\n";
/// Magic, version, checksum.
const PREFIX: usize = 24;
/// Bytes of a rule: four small fields and four offsets.
const RULE_BYTES: usize = 20;
const HEADER: usize = PREFIX + 4 + 8 + 5 * 4 + TableStats::FIELDS * 4;
/// Size of the largest file that can be valid.
pub(super) const MAX_BYTES: u64 = (HEADER
    + MAX_BUILD_ID
    + MAX_RULES * size_of::<Rule>()
    + MAX_PAGES * size_of::<Page>()
    + MAX_ROWS * size_of::<Row>()) as u64;

/// Changes with the meaning of the bytes ([`abi::HASH`]) and with the code that makes tables, so that a table is always
/// the one that would be made now.
const VERSION: u64 = {
    let mut hash = abi::HASH;
    hash = mix(hash, include_bytes!("format.rs"));
    hash = mix(hash, include_bytes!("../architecture.rs"));
    hash = mix(hash, include_bytes!("../bolt.rs"));
    hash = mix(hash, include_bytes!("../build.rs"));
    hash = mix(hash, include_bytes!("../derived/beginnings.rs"));
    hash = mix(hash, include_bytes!("../derived/callers.rs"));
    hash = mix(hash, include_bytes!("../derived/facts.rs"));
    hash = mix(hash, include_bytes!("../derived/function.rs"));
    hash = mix(hash, include_bytes!("../derived/judge.rs"));
    hash = mix(hash, include_bytes!("../derived/mod.rs"));
    hash = mix(hash, include_bytes!("../derived/program.rs"));
    hash = mix(hash, include_bytes!("../derived/rows.rs"));
    hash = mix(hash, include_bytes!("../derived/space.rs"));
    hash = mix(hash, include_bytes!("../exits/effect.rs"));
    hash = mix(hash, include_bytes!("../exits/state.rs"));
    hash = mix(hash, include_bytes!("../frames/convert.rs"));
    hash = mix(hash, include_bytes!("../frames/cursor.rs"));
    hash = mix(hash, include_bytes!("../frames/entries.rs"));
    hash = mix(hash, include_bytes!("../frames/expression.rs"));
    hash = mix(hash, include_bytes!("../frames/instructions.rs"));
    hash = mix(hash, include_bytes!("../frames/section.rs"));
    hash = mix(hash, include_bytes!("../gopclntab.rs"));
    hash = mix(hash, include_bytes!("../image.rs"));
    hash = mix(hash, include_bytes!("../limits.rs"));
    hash = mix(hash, include_bytes!("../padding.rs"));
    hash = mix(hash, include_bytes!("../pages.rs"));
    hash = mix(hash, include_bytes!("../plt.rs"));
    hash = mix(hash, include_bytes!("../realign.rs"));
    hash = mix(hash, include_bytes!("../rules.rs"));
    hash = mix(hash, include_bytes!("../segments.rs"));
    hash = mix(hash, include_bytes!("../sigreturn.rs"));
    hash = mix(hash, include_bytes!("../stats.rs"));
    mix(hash, include_bytes!("../entry.rs"))
};

/// A hash for accidents, not for attackers: FNV-1a over words of eight bytes, then over the bytes that are left.
const fn mix(mut hash: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut i = 0;
    while i < words.len() {
        hash = (hash ^ u64::from_le_bytes(words[i])).wrapping_mul(PRIME);
        // a word's high bits would otherwise reach only the hash's high bits
        hash ^= hash >> 32;
        i += 1;
    }
    let mut i = 0;
    while i < rest.len() {
        hash = (hash ^ rest[i] as u64).wrapping_mul(PRIME);
        i += 1;
    }
    hash
}

/// The bytes of a table.
pub(super) fn encode(key: &CacheKey, table: &UnwindTable) -> Vec<u8> {
    let identity = key.identity.bytes();
    let mut bytes = Vec::with_capacity(HEADER + identity.len() + table.size());
    bytes.extend([0; PREFIX]);
    bytes.extend(key.architecture.machine().to_le_bytes());
    bytes.extend(key.identity.kind().to_le_bytes());
    bytes.extend(key.file_size.to_le_bytes());
    let counts = [identity.len(), table.first_page as usize, table.pages.len(), table.rows.len(), table.rules.len()];
    // the limits of tables are far below 32 bits
    bytes.extend(counts.iter().flat_map(|&count| (count as u32).to_le_bytes()));
    bytes.extend(table.stats.to_fields().iter().flat_map(|field| field.to_le_bytes()));
    bytes.extend(identity);
    bytes.extend(table.rules.iter().flat_map(rule_bytes));
    for page in &table.pages {
        bytes.extend(page.first_row.to_le_bytes());
        bytes.extend(page.rows.to_le_bytes());
    }
    for row in &table.rows {
        bytes.extend((u32::from(row.rule) << 16 | u32::from(row.low)).to_le_bytes());
    }
    let prefix = prefix(&bytes[PREFIX..]);
    bytes[..PREFIX].copy_from_slice(&prefix);
    bytes
}

/// What stands before everything else.
fn prefix(rest: &[u8]) -> [u8; PREFIX] {
    let mut prefix = [0; PREFIX];
    for (place, word) in
        prefix.as_chunks_mut().0.iter_mut().zip([MAGIC, VERSION.to_le_bytes(), mix(0, rest).to_le_bytes()])
    {
        *place = word;
    }
    prefix
}

/// [`decode`] of bytes that get the right prefix.
#[cfg(fuzzing)]
pub(crate) fn decode_body(key: &CacheKey, body: &[u8]) -> Option<UnwindTable> {
    decode(key, &[&prefix(body), body].concat())
}

/// [`encode`] without the prefix.
#[cfg(fuzzing)]
pub(crate) fn encode_body(key: &CacheKey, table: &UnwindTable) -> Vec<u8> {
    encode(key, table).split_off(PREFIX)
}

/// The table for `key` that the bytes hold; `None` if they are not exactly what [`encode`] writes for a table on which
/// every search stays within bounds.
pub(super) fn decode(key: &CacheKey, bytes: &[u8]) -> Option<UnwindTable> {
    let (begin, rest) = bytes.split_first_chunk::<PREFIX>()?;
    if *begin != prefix(rest) {
        return None;
    }
    let mut fields = Fields(rest);
    let kinds = fields.u32()?;
    let (architecture, kind) = (Architecture::from_machine(kinds as u16)?, (kinds >> 16) as u16);
    let file_size = u64::from(fields.u32()?) | u64::from(fields.u32()?) << 32;
    let identity_length = fields.u32()? as usize;
    let first_page = fields.u32()?;
    let [pages, rows, rules] = [fields.u32()? as usize, fields.u32()? as usize, fields.u32()? as usize];
    let mut stats = [0; TableStats::FIELDS];
    for field in &mut stats {
        *field = fields.u32()?;
    }
    let identity = (kind, fields.take(identity_length, 1)?);
    let wanted = (key.identity.kind(), &*key.identity.bytes());
    if architecture != key.architecture || file_size != key.file_size || identity != wanted {
        return None;
    }
    if pages > MAX_PAGES || rows > MAX_ROWS || rules > MAX_RULES {
        return None;
    }
    let rules = fields.take(rules, RULE_BYTES)?.as_chunks().0.iter().map(decode_rule).collect::<Option<_>>()?;
    let pages = fields.take(pages, 8)?.as_chunks().0.iter().map(decode_page).collect();
    let rows = fields.take(rows, 4)?.as_chunks().0.iter().map(decode_row).collect();
    let table = UnwindTable { architecture, first_page, pages, rows, rules, stats: TableStats::from_fields(stats) };
    (fields.0.is_empty() && is_consistent(&table)).then_some(table)
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u32(&mut self) -> Option<u32> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*field))
    }

    fn take(&mut self, count: usize, size: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count.checked_mul(size)?)?;
        self.0 = rest;
        Some(bytes)
    }
}

fn rule_bytes(rule: &Rule) -> [u8; RULE_BYTES] {
    let mut bytes = [0; RULE_BYTES];
    bytes[..4].copy_from_slice(&[rule.cfa, rule.register, rule.fp, rule.ra]);
    for (i, offset) in [rule.cfa_offset, rule.fp_offset, rule.extra, rule.bx_offset].into_iter().enumerate() {
        bytes[4 + i * 4..][..4].copy_from_slice(&offset.to_le_bytes());
    }
    bytes
}

fn decode_rule(bytes: &[u8; RULE_BYTES]) -> Option<Rule> {
    let offset = |i: usize| i32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
    let [cfa, register, fp, ra, ..] = *bytes;
    let known = cfa <= cfa::OTHER_STACK && fp <= fp::LOST && ra <= ra::REGISTER && register < 32;
    known.then(|| Rule {
        cfa,
        register,
        fp,
        ra,
        cfa_offset: offset(4),
        fp_offset: offset(8),
        extra: offset(12),
        bx_offset: offset(16),
    })
}

fn decode_page(bytes: &[u8; 8]) -> Page {
    let word = u64::from_le_bytes(*bytes);
    Page { first_row: word as u32, rows: (word >> 32) as u32 }
}

fn decode_row(bytes: &[u8; 4]) -> Row {
    let word = u32::from_le_bytes(*bytes);
    Row { low: word as u16, rule: (word >> 16) as u16 }
}

/// What the type's documentation promises of every table.
fn is_consistent(table: &UnwindTable) -> bool {
    let rules = table.rules.len();
    let mut next = 0;
    let pages_are = table.pages.iter().all(|page| {
        let begin = next;
        next += page.rows as usize;
        page.first_row as usize == begin && table.rows.get(begin..next).is_some_and(is_page)
    });
    pages_are
        && next == table.rows.len()
        && table.rules.first() == Some(&Rule::NONE)
        && table.rows.iter().all(|row| usize::from(row.rule) < rules)
}

fn is_page(rows: &[Row]) -> bool {
    rows.first().is_none_or(|row| row.low == 0)
        && rows.last().is_none_or(|row| u64::from(row.low) <= PAGE_MASK)
        && rows.windows(2).all(|pair| pair[0].low < pair[1].low && pair[0].rule != pair[1].rule)
}
