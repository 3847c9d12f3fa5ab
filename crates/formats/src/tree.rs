//! The samples of a profile as one tree of labels: processes, below them their threads, below them the stacks.
//!
//! Formats that name a frame by one text, such as folded stacks and pictures, see frames alike that the model
//! keeps apart (two addresses of one function, say). Here they are one node.

use std::collections::HashMap;

use profile::{FrameId, NodeId, Profile, Sample, Text};
use rustc_hash::FxHashMap;

/// Position of the root, which stands for the whole profile and has no label of its own.
pub(crate) const ROOT: usize = 0;

/// A node.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Position in [`Tree::labels`].
    pub(crate) label: usize,
    /// Samples that end here.
    pub(crate) own: u128,
    /// Those and the ones of all nodes below.
    pub(crate) total: u128,
    /// Nodes below, by the bytes of their labels.
    pub(crate) children: Vec<usize>,
}

/// A tree of labels.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Each label once.
    pub(crate) labels: Vec<String>,
    /// The root first; a node comes before its children.
    pub(crate) nodes: Vec<Node>,
}

/// How things are called.
pub(crate) trait Labels {
    /// The label of a process or of a thread.
    fn task(&self, name: &str) -> String;
    /// The label of a frame.
    fn frame(&self, frame: FrameId) -> String;
}

impl Tree {
    /// The tree of all samples. A thread has a node where its name differs from that of its process.
    pub(crate) fn new(profile: &Profile, labels: &impl Labels) -> Tree {
        let mut growing = Growing::new(profile, labels);
        for sample in profile.samples.iter().filter(|sample| sample.count > 0) {
            growing.add(sample);
        }
        growing.finish()
    }

    /// The label of a node.
    pub(crate) fn label(&self, node: usize) -> &str {
        &self.labels[self.nodes[node].label]
    }

    fn sum_up(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let below: u128 = self.nodes[at].children.iter().map(|child| self.nodes[*child].total).sum();
            self.nodes[at].total = self.nodes[at].own + below;
        }
    }

    fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        order.sort_unstable_by(|a, b| self.labels[*a].cmp(&self.labels[*b]));
        let mut rank = vec![0; order.len()];
        for (position, label) in order.into_iter().enumerate() {
            rank[label] = position;
        }
        let by_node: Vec<usize> = self.nodes.iter().map(|node| rank[node.label]).collect();
        for node in &mut self.nodes {
            node.children.sort_unstable_by_key(|child| by_node[*child]);
        }
    }
}

/// A tree that is being built.
struct Growing<'a, L> {
    profile: &'a Profile,
    names: &'a L,
    tree: Tree,
    // labels are chosen by the targets: std's hasher cannot be flooded
    label_ids: HashMap<String, usize>,
    tasks: FxHashMap<Text, usize>,
    frames: Vec<Option<usize>>,
    children: FxHashMap<(usize, usize), usize>,
    stacks: FxHashMap<(usize, NodeId), usize>,
    path: Vec<NodeId>,
}

impl<'a, L: Labels> Growing<'a, L> {
    fn new(profile: &'a Profile, names: &'a L) -> Self {
        Growing {
            profile,
            names,
            tree: Tree { labels: vec![String::new()], nodes: vec![Node::default()] },
            label_ids: HashMap::from([(String::new(), 0)]),
            tasks: FxHashMap::default(),
            frames: vec![None; profile.frames.len()],
            children: FxHashMap::default(),
            stacks: FxHashMap::default(),
            path: Vec::new(),
        }
    }

    fn add(&mut self, sample: &Sample) {
        let thread = &self.profile.threads[sample.thread.index()];
        let process = self.profile.processes[thread.process.index()].name;
        let mut node = self.task(ROOT, process);
        if thread.name != process {
            node = self.task(node, thread.name);
        }
        if let Some(stack) = sample.stack {
            node = self.stack(node, stack);
        }
        self.tree.nodes[node].own += u128::from(sample.count);
    }

    fn task(&mut self, parent: usize, name: Text) -> usize {
        let label = match self.tasks.get(&name) {
            Some(label) => *label,
            None => {
                let label = self.label(self.names.task(self.profile.text(name)));
                self.tasks.insert(name, label);
                label
            }
        };
        self.child(parent, label)
    }

    /// The node of a stack below the node of a task. Goes up to the nearest known caller and down again.
    fn stack(&mut self, task: usize, stack: NodeId) -> usize {
        self.path.clear();
        let mut node = task;
        let mut at = Some(stack);
        while let Some(id) = at {
            if let Some(known) = self.stacks.get(&(task, id)) {
                node = *known;
                break;
            }
            self.path.push(id);
            at = self.profile.nodes[id.index()].parent;
        }
        while let Some(id) = self.path.pop() {
            let label = self.frame(self.profile.nodes[id.index()].frame);
            node = self.child(node, label);
            self.stacks.insert((task, id), node);
        }
        node
    }

    fn frame(&mut self, frame: FrameId) -> usize {
        if let Some(label) = self.frames[frame.index()] {
            return label;
        }
        let label = self.label(self.names.frame(frame));
        self.frames[frame.index()] = Some(label);
        label
    }

    fn label(&mut self, label: String) -> usize {
        let labels = &mut self.tree.labels;
        *self.label_ids.entry(label).or_insert_with_key(|label| {
            labels.push(label.clone());
            labels.len() - 1
        })
    }

    fn child(&mut self, parent: usize, label: usize) -> usize {
        let nodes = &mut self.tree.nodes;
        *self.children.entry((parent, label)).or_insert_with(|| {
            nodes.push(Node { label, ..Node::default() });
            let id = nodes.len() - 1;
            nodes[parent].children.push(id);
            id
        })
    }

    fn finish(mut self) -> Tree {
        self.tree.sum_up();
        self.tree.sort();
        self.tree
    }
}
