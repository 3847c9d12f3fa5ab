//! What a table was made of.

use abi::table::{Row, Rule, cfa, fp};

/// Counts of one table, to see what a file has that walks cannot follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableStats {
    /// Functions (FDEs) that lie in executable segments.
    pub fdes: u32,
    /// Of these, the ones whose instructions are bad: their code is `unsupported::BAD_FDE`.
    pub bad_fdes: u32,
    /// FDEs whose code could not even be located; they are in no table.
    pub lost_fdes: u32,
    /// FDEs of code that is not in an executable segment, or of no code: what linkers leave of removed functions.
    pub outside_fdes: u32,
    /// FDEs that begin where another one does; the first of the section counts.
    pub duplicate_fdes: u32,
    /// 1 if an entry's length led beyond the section, so that the entries behind it were lost; else 0.
    pub broken_framing: u32,
    /// Gaps between functions of [`MIN_GAP`](crate::limits::MIN_GAP) bytes and more, which have no rule.
    pub gaps: u32,
    /// Smaller gaps, where the rule of the function before goes on.
    pub paddings: u32,
    /// Signal return trampolines that no FDE describes and that were found by their code.
    pub trampolines: u32,
    /// Rows.
    pub rows: u32,
    /// Distinct rules, with the one for "nothing".
    pub rules: u32,
    /// Rows of [`cfa::UNSUPPORTED`] by reason; index 0 counts reasons that have no number.
    pub unsupported_rows: [u32; 6],
    /// Rows of [`cfa::REGISTER`].
    pub register_rows: u32,
    /// Rows of [`fp::LOST`].
    pub lost_fp_rows: u32,
    /// Rows of [`cfa::DEREF_FP`] and [`cfa::DEREF_SP`].
    pub loaded_rows: u32,
}

impl TableStats {
    /// Fields in the order in which the cache writes them.
    pub(crate) const FIELDS: usize = 20;

    /// Counts rows by what their rules say.
    pub(crate) fn count_rows(&mut self, rows: &[Row], rules: &[Rule]) {
        let mut uses = vec![0u32; rules.len()];
        for row in rows {
            if let Some(uses) = uses.get_mut(usize::from(row.rule)) {
                *uses += 1;
            }
        }
        self.rows = rows.len() as u32;
        self.rules = rules.len() as u32;
        for (rule, uses) in rules.iter().zip(uses) {
            match rule.cfa {
                cfa::UNSUPPORTED => {
                    let reason = usize::from(rule.register);
                    self.unsupported_rows[if reason < 6 { reason } else { 0 }] += uses;
                }
                cfa::REGISTER => self.register_rows += uses,
                cfa::DEREF_FP | cfa::DEREF_SP => self.loaded_rows += uses,
                _ => {}
            }
            if rule.fp == fp::LOST {
                self.lost_fp_rows += uses;
            }
        }
    }

    pub(crate) fn to_fields(self) -> [u32; Self::FIELDS] {
        let u = self.unsupported_rows;
        [
            self.fdes,
            self.bad_fdes,
            self.lost_fdes,
            self.outside_fdes,
            self.duplicate_fdes,
            self.broken_framing,
            self.gaps,
            self.paddings,
            self.trampolines,
            self.rows,
            self.rules,
            u[0],
            u[1],
            u[2],
            u[3],
            u[4],
            u[5],
            self.register_rows,
            self.lost_fp_rows,
            self.loaded_rows,
        ]
    }

    pub(crate) fn from_fields(f: [u32; Self::FIELDS]) -> TableStats {
        TableStats {
            fdes: f[0],
            bad_fdes: f[1],
            lost_fdes: f[2],
            outside_fdes: f[3],
            duplicate_fdes: f[4],
            broken_framing: f[5],
            gaps: f[6],
            paddings: f[7],
            trampolines: f[8],
            rows: f[9],
            rules: f[10],
            unsupported_rows: [f[11], f[12], f[13], f[14], f[15], f[16]],
            register_rows: f[17],
            lost_fp_rows: f[18],
            loaded_rows: f[19],
        }
    }
}
