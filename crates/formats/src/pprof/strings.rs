//! The table of strings.

use std::collections::HashMap;

use crate::escape;

/// Collects strings. Equal ones get equal positions.
pub(super) struct Strings {
    ids: HashMap<String, i64>,
    list: Vec<String>,
}

impl Default for Strings {
    /// A table must begin with the empty string.
    fn default() -> Strings {
        Strings { ids: HashMap::from([(String::new(), 0)]), list: vec![String::new()] }
    }
}

impl Strings {
    /// The position of a string of our own.
    pub(super) fn id(&mut self, text: &str) -> i64 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }

    /// The position of a string that a target chose: pprof prints strings to the terminal as they are.
    pub(super) fn visible(&mut self, text: &str) -> i64 {
        self.id(&escape::visible(text))
    }

    /// The table.
    pub(super) fn finish(self) -> Vec<String> {
        self.list
    }
}
