//! The distinct rules of a table.

use std::collections::HashMap;

use abi::table::{Rule, unsupported};

use crate::limits::MAX_RULES;

/// Numbers rules in the order in which they first appear. Number 0 is [`Rule::NONE`].
///
/// The map is keyed by a random hash: rules come from a file, whose author could choose them to collide.
pub(crate) struct Rules {
    rules: Vec<Rule>,
    numbers: HashMap<Rule, u16>,
    last: (Rule, u16),
}

impl Rules {
    pub(crate) fn new() -> Rules {
        Rules { rules: vec![Rule::NONE], numbers: HashMap::from([(Rule::NONE, 0)]), last: (Rule::NONE, 0) }
    }

    /// The number of a rule. The last free one goes to "too many rules", and to all rules that come after it.
    pub(crate) fn number(&mut self, rule: Rule) -> u16 {
        if self.last.0 == rule {
            return self.last.1;
        }
        let number = match self.numbers.get(&rule) {
            Some(&number) => number,
            None => self.add(rule),
        };
        self.last = (rule, number);
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
