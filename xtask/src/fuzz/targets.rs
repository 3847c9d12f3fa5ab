//! Which targets there are.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::places;
use super::session::Session;
use crate::command::{cargo, output};

/// Names of targets, by the alphabet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets(Vec<String>);

impl Targets {
    /// All programs of the fuzz package.
    pub fn find() -> Result<Targets> {
        let mut metadata = cargo("metadata");
        metadata.args(["--no-deps", "--format-version=1", "--manifest-path"]).arg(places::manifest());
        let metadata: Value =
            serde_json::from_str(&output(&mut metadata)?).context("cargo metadata printed no JSON")?;
        let targets = programs(&metadata);
        if targets.is_empty() {
            bail!("{} has no programs", places::manifest().display());
        }
        Ok(Targets(targets))
    }

    /// The one of that name, or all.
    pub fn chosen(self, name: &str) -> Result<Targets> {
        if name == "all" {
            return Ok(self);
        }
        if !self.0.iter().any(|target| target == name) {
            bail!("there is no target {name}; there are: {}", self.0.join(", "));
        }
        Ok(Targets(vec![name.to_owned()]))
    }

    /// Their names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// What is to be run: a session of each, or as many as there are jobs of a single one.
    pub fn sessions(&self, jobs: usize, time: Duration) -> Vec<Session> {
        let each = if self.0.len() == 1 { jobs } else { 1 };
        let sessions = self.0.iter().flat_map(|target| (1..=each).map(move |number| (target, number)));
        sessions.map(|(target, number)| Session { target: target.clone(), number, time }).collect()
    }
}

fn programs(metadata: &Value) -> Vec<String> {
    let targets =
        metadata["packages"].as_array().into_iter().flatten().flat_map(|package| package["targets"].as_array());
    let is_program =
        |target: &&Value| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"));
    let names = targets.flatten().filter(is_program).filter_map(|target| target["name"].as_str());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Targets {
        Targets(programs(&serde_json::json!({ "packages": [{ "targets": [
            { "name": "walk", "kind": ["bin"] },
            { "name": "fuzz", "kind": ["lib"] },
            { "name": "elf", "kind": ["bin"] },
        ] }] })))
    }

    #[test]
    fn programs_are_targets() {
        assert_eq!(two(), Targets(vec!["elf".to_owned(), "walk".to_owned()]));
    }

    #[test]
    fn one_or_all_are_chosen() {
        assert_eq!(two().chosen("all").unwrap(), two());
        assert_eq!(two().chosen("walk").unwrap(), Targets(vec!["walk".to_owned()]));
        assert!(two().chosen("stat").unwrap_err().to_string().ends_with("there are: elf, walk"));
    }

    #[test]
    fn jobs_of_a_single_target_are_sessions_of_it() {
        let names = |targets: Targets| {
            let sessions = targets.sessions(2, Duration::ZERO);
            sessions.iter().map(|session| format!("{} {}", session.target, session.number)).collect::<Vec<_>>()
        };
        assert_eq!(names(two()), ["elf 1", "walk 1"]);
        assert_eq!(names(two().chosen("elf").unwrap()), ["elf 1", "elf 2"]);
    }
}
