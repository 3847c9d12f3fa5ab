//! One thing that was looked at.

use serde::Serialize;

/// Whether it is as a recording wants it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// As it should be, or of no account.
    Ok,
    /// Recording is possible and loses something.
    Limited,
    /// Recording is not possible.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Item {
    /// What it is.
    pub(super) name: &'static str,
    /// Whether it is as a recording wants it.
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// What that means for a recording.
    pub(super) meaning: String,
    /// What to do about it, commands to type. Empty where there is nothing to do.
    pub(super) remedies: Vec<String>,
}

impl Item {
    /// As it should be.
    pub(super) fn ok(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Item {
        Item::new(name, State::Ok, found, meaning)
    }

    /// Something is lost.
    pub(super) fn limited(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Item {
        Item::new(name, State::Limited, found, meaning)
    }

    /// Nothing can be recorded.
    pub(super) fn missing(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Item {
        Item::new(name, State::Missing, found, meaning)
    }

    /// With a state that is not known beforehand.
    pub(super) fn new(name: &'static str, state: State, found: impl Into<String>, meaning: impl Into<String>) -> Item {
        Item { name, state, found: found.into(), meaning: meaning.into(), remedies: Vec::new() }
    }

    /// Adds what to do about it.
    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Item {
        self.remedies.push(remedy.into());
        self
    }

    /// Adds several.
    pub(super) fn remedies(mut self, remedies: impl IntoIterator<Item = String>) -> Item {
        self.remedies.extend(remedies);
        self
    }
}

/// Everything that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Report {
    /// Whether a recording can be made.
    pub(super) possible: bool,
    /// In the order in which they are shown.
    pub(super) items: Vec<Item>,
}
