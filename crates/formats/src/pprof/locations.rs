//! Functions and places in them.

use profile::{FrameId, Kind, NodeId, Profile};
use rustc_hash::FxHashMap;

use super::mappings::Mappings;
use super::messages::{Function, Line, Location, Mapping};
use super::strings::Strings;

/// Collects the locations of stacks. Equal ones get equal ids.
pub(super) struct Locations<'a> {
    profile: &'a Profile,
    mappings: Mappings,
    ids: FxHashMap<(u64, u64, Vec<Line>), u64>,
    of_frames: FxHashMap<Vec<FrameId>, u64>,
    list: Vec<Location>,
    functions: Vec<Function>,
    of_function: Vec<u64>,
}

impl<'a> Locations<'a> {
    /// No locations yet.
    pub(super) fn new(profile: &'a Profile, strings: &mut Strings) -> Locations<'a> {
        Locations {
            profile,
            mappings: Mappings::new(profile, strings),
            ids: FxHashMap::default(),
            of_frames: FxHashMap::default(),
            list: Vec::new(),
            functions: Vec::new(),
            of_function: vec![0; profile.functions.len()],
        }
    }

    /// The ids of the locations of a stack, innermost first.
    pub(super) fn of_stack(&mut self, stack: Option<NodeId>, strings: &mut Strings) -> Vec<u64> {
        let profile = self.profile;
        let mut ids = Vec::new();
        let mut group = Vec::new();
        for frame in profile.frames_of(stack) {
            group.push(frame);
            if !profile.frames[frame.index()].inlined {
                ids.push(self.of_group(&group, strings));
                group.clear();
            }
        }
        if !group.is_empty() {
            ids.push(self.of_group(&group, strings));
        }
        ids
    }

    /// The location of a function, which comes last, and of what was inlined into it.
    fn of_group(&mut self, group: &[FrameId], strings: &mut Strings) -> u64 {
        if let Some(id) = self.of_frames.get(group) {
            return *id;
        }
        let lines: Vec<Line> = group.iter().map(|frame| self.line(*frame, strings)).collect();
        let outer = group.last().map(|frame| &self.profile.frames[frame.index()]);
        let (mapping_id, address) = outer.map_or((0, 0), |frame| self.mappings.place(self.profile, frame));
        let list = &mut self.list;
        let id = *self.ids.entry((mapping_id, address, lines)).or_insert_with_key(|(_, _, lines)| {
            let id = list.len() as u64 + 1;
            list.push(Location { id, mapping_id, address, line: lines.clone() });
            id
        });
        self.of_frames.insert(group.to_vec(), id);
        id
    }

    fn line(&mut self, frame: FrameId, strings: &mut Strings) -> Line {
        let key = &self.profile.frames[frame.index()];
        Line { function_id: self.function(frame, strings), line: key.line.into() }
    }

    /// The id of a frame's function.
    fn function(&mut self, frame: FrameId, strings: &mut Strings) -> u64 {
        let id = self.profile.frames[frame.index()].function;
        let known = self.of_function[id.index()];
        if known != 0 {
            return known;
        }
        let key = &self.profile.functions[id.index()];
        let name = strings.visible(&self.profile.label(frame, false));
        let system_name = if key.kind == Kind::Python { 0 } else { name };
        let filename = key.file.map_or(0, |file| strings.visible(self.profile.text(file)));
        let new = self.functions.len() as u64 + 1;
        self.functions.push(Function { id: new, name, system_name, filename, start_line: key.start_line.into() });
        self.of_function[id.index()] = new;
        new
    }

    /// Mappings, locations and functions.
    pub(super) fn finish(self) -> (Vec<Mapping>, Vec<Location>, Vec<Function>) {
        (self.mappings.finish(), self.list, self.functions)
    }
}
