//! What must be true of every unwind table, whatever file it was made of.

use abi::table::{PAGE_MASK, Rule};
use objects::{Image, UnwindTable};

/// Makes the table of an executable, if there is one, and checks it.
pub fn build_and_check(bytes: &[u8]) {
    let Ok(image) = Image::from_bytes(bytes.to_vec()) else { return };
    let _ = image.build_id();
    if let Ok(table) = UnwindTable::build(&image) {
        check(&table);
    }
}

/// Checks that every search of a table, in the kernel as here, stays within it and finds what the rows say.
pub fn check(table: &UnwindTable) {
    assert_eq!(table.rules.first(), Some(&Rule::NONE));
    let mut next = 0;
    for (index, page) in table.pages.iter().enumerate() {
        assert_eq!(page.first_row as usize, next, "page {index}");
        next += page.rows as usize;
        let rows = &table.rows[page.first_row as usize..next];
        assert!(rows.first().is_none_or(|row| row.low == 0), "page {index}");
        assert!(rows.windows(2).all(|pair| pair[0].low < pair[1].low && pair[0].rule != pair[1].rule), "page {index}");
        assert!(rows.iter().all(|row| u64::from(row.low) <= PAGE_MASK), "page {index}");
    }
    assert_eq!(next, table.rows.len());
    assert!(table.rows.iter().all(|row| usize::from(row.rule) < table.rules.len()));
    look_up(table);
}

/// A search at the first and the last byte of each row finds its rule.
fn look_up(table: &UnwindTable) {
    for (index, page) in table.pages.iter().enumerate() {
        let begin = (u64::from(table.first_page) + index as u64) << abi::table::PAGE_BITS;
        let rows = &table.rows[page.first_row as usize..][..page.rows as usize];
        let ends = rows.iter().skip(1).map(|row| u64::from(row.low) - 1).chain([PAGE_MASK]);
        for (row, end) in rows.iter().zip(ends) {
            let rule = table.rules[usize::from(row.rule)];
            assert_eq!(table.lookup(begin + u64::from(row.low)), rule);
            assert_eq!(table.lookup(begin + end), rule);
        }
        if rows.is_empty() {
            assert_eq!(table.lookup(begin), Rule::NONE);
        }
    }
    for rule in &table.rules {
        assert!(!objects::describe(rule, table.architecture).is_empty());
    }
    for outside in [0, u64::MAX] {
        let _ = table.explain(outside);
    }
}
