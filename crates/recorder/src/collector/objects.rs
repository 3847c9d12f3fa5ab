//! Who uses which object, and which tables are wanted, in place, or no longer needed.

use std::time::Instant;

use rustc_hash::FxHashSet;

use super::{Collector, Parked, TABLE_LINGERS};
use crate::builders::Job;
use crate::known_objects::TableState;

impl Collector {
    pub(super) fn note_objects_of_child(&mut self, parent: u32, pid: u32) {
        let objects = self.attention.get(&parent).map(|attention| attention.objects.clone()).unwrap_or_default();
        self.set_users(pid, objects);
    }

    /// Enters a process as user of these objects and of no others.
    pub(super) fn set_users(&mut self, pid: u32, objects: Vec<u32>) {
        let before = match self.attention.get_mut(&pid) {
            Some(attention) => std::mem::replace(&mut attention.objects, objects.clone()),
            None => Vec::new(),
        };
        for number in before.iter().filter(|number| !objects.contains(number)) {
            self.remove_user(*number, pid);
        }
        for number in &objects {
            if let Some(object) = self.objects.get_mut(*number) {
                object.users.insert(pid);
                self.idle_objects.remove(number);
            }
        }
    }

    pub(super) fn remove_user(&mut self, number: u32, pid: u32) {
        if let Some(object) = self.objects.get_mut(number) {
            object.users.remove(&pid);
            if object.users.is_empty() {
                self.idle_objects.insert(number, Instant::now());
            }
        }
    }

    pub(super) fn ask_table(&mut self, number: u32) {
        let Some(object) = self.objects.get_mut(number) else { return };
        if let (TableState::Unasked, Some(file)) = (&object.table, &object.file) {
            self.builders.ask(Job { object: number, file: file.clone(), cached: object.trusted });
            object.table = TableState::Asked;
        }
    }

    /// Puts finished tables in place and goes on with what waited for them.
    pub(super) fn take_tables(&mut self) {
        let mut arrived = FxHashSet::default();
        for built in self.builders.take() {
            let state = match built.table {
                Ok(table) if table.rows.is_empty() => TableState::None("no unwind information".to_owned()),
                Ok(table) => match self.tables.install(&table) {
                    Ok(installed) => TableState::Installed(installed),
                    Err(error) => {
                        self.troubles.no_room = Some(error.to_string());
                        TableState::None(error.to_string())
                    }
                },
                Err(reason) => TableState::None(reason),
            };
            if let Some(object) = self.objects.get_mut(built.object) {
                object.table = state;
                self.dirty.extend(&object.users);
            }
            arrived.insert(built.object);
        }
        if !arrived.is_empty() {
            let (ready, waiting) =
                std::mem::take(&mut self.parked).into_iter().partition(|parked| arrived.contains(&parked.needs));
            self.parked = waiting;
            let ready: Vec<Parked> = ready;
            ready.into_iter().for_each(|parked| self.walk_parked(parked));
        }
    }

    pub(super) fn free_idle_tables(&mut self) {
        let idle: Vec<u32> = self
            .idle_objects
            .iter()
            .filter(|(_, since)| since.elapsed() >= TABLE_LINGERS)
            .map(|(number, _)| *number)
            .collect();
        for number in idle {
            self.idle_objects.remove(&number);
            let Some(object) = self.objects.get_mut(number) else { continue };
            if let TableState::Installed(_) = object.table
                && let TableState::Installed(installed) = std::mem::replace(&mut object.table, TableState::Unasked)
            {
                self.tables.remove(installed);
            }
        }
    }
}
