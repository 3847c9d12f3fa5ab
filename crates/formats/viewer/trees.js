// The trees that are drawn. Their nodes are made when they are first seen: what is too narrow to be drawn, or lies in
// a part that nobody looks at, costs nothing, however large the profile is.

/** A box: a frame (merged over all places it stands for), a group of samples, or the root of all. */
class Box {
  constructor(parent, frame, group) {
    this.parent = parent;
    this.depth = parent ? parent.depth + 1 : 0;
    /** Frame number; -1 for groups and the root. */
    this.frame = frame;
    /** `{what: 'process'|'thread', id}` for groups. */
    this.group = group;
    this.total = 0;
    /** Samples that end here; known once `children` is. */
    this.self = 0;
    /** Boxes next to this one away from the root, widest first; null until someone asks the tree. */
    this.children = null;
    /** What the box stands for, as triples of numbers; their meaning is the tree's. */
    this.pieces = [];
    /** The row it was last laid out in. */
    this.row = -1;
    /** The box that stands for the children that are too narrow to be drawn. */
    this.rest = null;
    this.isRest = false;
    this.count = 1;
  }
}

/** What trees have in common: merging by function, and making children on demand. */
class Tree {
  /** `merged[frame]` is the same number for frames that share a box. */
  constructor(profile, selection, merged) {
    this.profile = profile;
    this.selection = selection;
    this.merged = merged;
    // which child a merged frame has become; valid where the stamp is the current one
    this.childOf = new Int32Array(profile.frames.function.length);
    this.stamps = new Int32Array(profile.frames.function.length);
    this.stamp = 0;
    this.root = new Box(null, -1, null);
  }

  /** The children of a box. */
  children(box) {
    if (!box.children) {
      box.children = [];
      this.stamp++;
      this.expand(box);
      box.children.sort((a, b) => b.total - a.total);
    }
    return box.children;
  }

  /** Samples that end in a box. */
  self(box) {
    this.children(box);
    return box.self;
  }

  /** The child of `box` for a frame. */
  child(box, frame) {
    const key = this.merged[frame];
    if (this.stamps[key] !== this.stamp) {
      this.stamps[key] = this.stamp;
      this.childOf[key] = box.children.length;
      box.children.push(new Box(box, frame, null));
    }
    return box.children[this.childOf[key]];
  }

  /** Puts boxes for the selection's groups below the root; gives the box of each group. */
  groupBoxes(grouping) {
    const { selection, profile, root } = this;
    root.total = selection.total;
    if (grouping === 'none') return selection.groups.map(() => root);
    root.children = [];
    const processBoxes = new Map();
    const boxes = selection.groups.map(({ id, from, to }) => {
      const total = selection.before[to] - selection.before[from];
      const process = grouping === 'thread' ? profile.threads.process[id] : id;
      if (!processBoxes.has(process)) {
        processBoxes.set(process, new Box(root, -1, { what: 'process', id: process }));
        root.children.push(processBoxes.get(process));
      }
      let box = processBoxes.get(process);
      box.total += total;
      if (grouping === 'thread') {
        box.children ??= [];
        box.children.push(new Box(box, -1, { what: 'thread', id }));
        box = box.children.at(-1);
        box.total = total;
      }
      return box;
    });
    const byTotal = (a, b) => b.total - a.total;
    root.children.sort(byTotal);
    for (const box of root.children) box.children?.sort(byTotal);
    return boxes;
  }
}

/** From the outermost frames to the innermost. Pieces: node of the profile's tree, and its range of the selection. */
class CalleeTree extends Tree {
  static of(profile, selection, merged, grouping) {
    const tree = new CalleeTree(profile, selection, merged);
    tree.groupBoxes(grouping).forEach((box, i) => {
      const { from, to } = selection.groups[i];
      box.pieces.push(0, from, to);
    });
    return tree;
  }

  /** What a function calls: rooted at its outermost occurrences, so that no sample counts twice. */
  static below(profile, selection, merged, id) {
    const tree = new CalleeTree(profile, selection, merged);
    for (const { node, from, to } of outermost(profile, selection, id)) {
      tree.root.pieces.push(node, from, to);
      tree.root.total += selection.before[to] - selection.before[from];
      tree.root.frame = profile.nodes.frame[node];
    }
    return tree;
  }

  away = 'callees';

  expand(box) {
    const { node: nodeOf, before } = this.selection;
    const { frame, end } = this.profile.nodes;
    for (let k = 0; k < box.pieces.length; k += 3) {
      const node = box.pieces[k];
      const to = box.pieces[k + 2];
      let at = box.pieces[k + 1];
      const own = at;
      while (at < to && nodeOf[at] === node) at++;
      box.self += before[at] - before[own];
      for (let below = node + 1; at < to; below = end[below]) {
        if (nodeOf[at] >= end[below]) continue;
        const next = lowerBound(nodeOf, end[below], at, to);
        const child = this.child(box, frame[below]);
        child.total += before[next] - before[at];
        child.pieces.push(below, at, next);
        at = next;
      }
    }
  }

  /** A node of the profile's tree that the box stands for. */
  place(box) {
    return box.pieces[0];
  }
}

/** From the innermost frames to the outermost. Pieces: the caller's node, samples, and the node it all began at. */
class CallerTree extends Tree {
  static of(profile, selection, merged, grouping) {
    const tree = new CallerTree(profile, selection, merged);
    tree.groupBoxes(grouping).forEach((box, i) => {
      const { from, to } = selection.groups[i];
      for (let at = from; at < to; at++) {
        tree.add(box, selection.node[at], selection.before[at + 1] - selection.before[at], selection.node[at]);
      }
    });
    return tree;
  }

  /** Who calls a function: rooted at its outermost occurrences. */
  static above(profile, selection, merged, id) {
    const tree = new CallerTree(profile, selection, merged);
    for (const { node, from, to } of outermost(profile, selection, id)) {
      const weight = selection.before[to] - selection.before[from];
      tree.root.total += weight;
      tree.root.frame = profile.nodes.frame[node];
      tree.add(tree.root, profile.nodes.parent[node], weight, node);
    }
    return tree;
  }

  away = 'callers';

  add(box, caller, weight, origin) {
    const { pieces } = box;
    // samples come in the order of the tree: those of one caller mostly follow each other
    if (pieces.length && pieces[pieces.length - 3] === caller) pieces[pieces.length - 2] += weight;
    else pieces.push(caller, weight, origin);
  }

  expand(box) {
    const { frame, parent } = this.profile.nodes;
    for (let k = 0; k < box.pieces.length; k += 3) {
      const node = box.pieces[k];
      const weight = box.pieces[k + 1];
      if (node === 0) {
        box.self += weight;
        continue;
      }
      const child = this.child(box, frame[node]);
      child.total += weight;
      this.add(child, parent[node], weight, box.pieces[k + 2]);
    }
  }

  /** A node of the profile's tree at which one of the box's chains begins. */
  place(box) {
    return box.pieces[2];
  }
}

/** Nodes of a function that lie below no other node of it, with their ranges of the selection. */
function* outermost({ nodes, frames }, selection, id) {
  const { node: sorted } = selection;
  for (let node = 1; node < nodes.count; node++) {
    if (frames.function[nodes.frame[node]] !== id) continue;
    const from = lowerBound(sorted, node, 0, sorted.length);
    const to = lowerBound(sorted, nodes.end[node], from, sorted.length);
    if (from < to) yield { node, from, to };
    node = nodes.end[node] - 1;
  }
}

/** For each frame the number of the frame whose box it shares: the first one that looks the same. */
function mergedFrames({ frames }, withLines) {
  const known = new Map();
  return Int32Array.from(frames.function, (id, frame) => {
    if (withLines) return frame;
    const key = id * 2 + frames.inlined[frame];
    if (!known.has(key)) known.set(key, frame);
    return known.get(key);
  });
}
