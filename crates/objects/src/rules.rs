//! The distinct rules of a table.

use std::collections::HashMap;

use abi::table::{Rule, unsupported};

use crate::limits::MAX_RULES;

/// Rules that are remembered in front of the map. A file has some hundred that are frequent.
const RECENT: usize = 1 << 10;

/// Numbers rules in the order in which they first appear. Number 0 is [`Rule::NONE`].
///
/// The map is keyed by a random hash: rules come from a file, whose author could choose them to collide. That hash takes
/// longer than decoding a row, so the latest rule of each simple hash stands in front of it; rules that collide there
/// cost a look into the map.
pub(crate) struct Rules {
    rules: Vec<Rule>,
    numbers: HashMap<Rule, u16>,
    recent: Box<[(Rule, u16); RECENT]>,
}

impl Rules {
    pub(crate) fn new() -> Rules {
        let recent = Box::new([(Rule::NONE, 0); RECENT]);
        Rules { rules: vec![Rule::NONE], numbers: HashMap::from([(Rule::NONE, 0)]), recent }
    }

    /// The number of a rule. The last free one goes to "too many rules", and to all rules that come after it.
    pub(crate) fn number(&mut self, rule: Rule) -> u16 {
        let slot = simple_hash(&rule);
        if self.recent[slot].0 == rule {
            return self.recent[slot].1;
        }
        let number = match self.numbers.get(&rule) {
            Some(&number) => number,
            None => self.add(rule),
        };
        self.recent[slot] = (rule, number);
        number
    }

    fn add(&mut self, rule: Rule) -> u16 {
        const LAST: u16 = (MAX_RULES - 1) as u16;
        let next = self.rules.len() as u16;
        if next > LAST {
            return LAST;
        }
        let rule = if next == LAST { Rule::unsupported(unsupported::TOO_MANY_RULES) } else { rule };
        self.rules.push(rule);
        self.numbers.insert(rule, next);
        next
    }

    pub(crate) fn finish(mut self) -> Vec<Rule> {
        self.rules.shrink_to_fit();
        self.rules
    }
}

/// An index into the recent rules, which differs where rules of compilers do.
fn simple_hash(rule: &Rule) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let forms = u32::from_le_bytes([rule.cfa, rule.register, rule.fp, rule.ra]);
    let pair = |a: i32, b: i32| u64::from(a.cast_unsigned()) | u64::from(b.cast_unsigned()) << 32;
    let words = [pair(rule.cfa_offset, rule.fp_offset), pair(rule.extra, rule.bx_offset), forms.into()];
    let hash = words.iter().fold(0u64, |hash, word| (hash.rotate_left(23) ^ word).wrapping_mul(ODD));
    // the high bits depend on all others
    (hash >> (64 - RECENT.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(offset: i32) -> Rule {
        Rule { cfa: abi::table::cfa::SP, cfa_offset: offset, ..Rule::NONE }
    }

    #[test]
    fn equal_rules_share_a_number() {
        let mut rules = Rules::new();
        assert_eq!(rules.number(Rule::NONE), 0);
        assert_eq!(rules.number(rule(8)), 1);
        assert_eq!(rules.number(rule(16)), 2);
        assert_eq!(rules.number(rule(8)), 1);
        assert_eq!(rules.finish(), [Rule::NONE, rule(8), rule(16)]);
    }

    /// More rules than are remembered, again and again in another order: each keeps its first number.
    #[test]
    fn forgotten_rules_keep_their_numbers() {
        let mut rules = Rules::new();
        let numbers: Vec<u16> = (0..3 * RECENT as i32).map(|offset| rules.number(rule(offset))).collect();
        assert!(numbers.iter().enumerate().all(|(index, number)| usize::from(*number) == index + 1));
        for step in [7, 11, 1021] {
            for index in (0..numbers.len()).map(|index| index * step % numbers.len()) {
                assert_eq!(rules.number(rule(index as i32)), numbers[index]);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mut rules = Rules::new();
        for offset in 0..MAX_RULES as i32 + 10 {
            rules.number(rule(offset));
        }
        assert_eq!(rules.number(rule(5)), 6, "those that were in time keep their numbers");
        let late = usize::from(rules.number(rule(MAX_RULES as i32 + 5)));
        let rules = rules.finish();
        assert_eq!(rules.len(), MAX_RULES);
        assert_eq!(rules[late], Rule::unsupported(unsupported::TOO_MANY_RULES));
        assert_eq!(rules[late - 1], rule(MAX_RULES as i32 - 3));
    }
}
