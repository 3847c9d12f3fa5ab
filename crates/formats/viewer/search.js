// Search: which functions and groups match, the share of samples, and the places to jump to.

/** Most places that are listed for jumping. */
const MOST_PLACES = 5000;

/**
 * What is typed: a regular expression; in small letters it matches capitals too. `file:` and `module:` in front of it
 * search these instead of the names, which Python functions have with and without their files. Throws what `RegExp` throws.
 */
function parseQuery(text) {
  const [, field = '', pattern] = /^(?:(file|module):)?(.*)$/s.exec(text);
  return { field, pattern: new RegExp(pattern, pattern === pattern.toLowerCase() ? 'i' : '') };
}

class Search {
  constructor(profile, text) {
    this.profile = profile;
    const { field, pattern } = parseQuery(text);
    const { functions, modules, strings } = profile;
    const matchingModules = modules.map(path => pattern.test(path));
    const tests = {
      '': id => pattern.test(functions.name[id]) || pattern.test(functions.name[id] + sourceSuffix(profile, id, 0)),
      file: id => functions.file[id] >= 0 && pattern.test(strings[functions.file[id]]),
      module: id => functions.module[id] >= 0 && matchingModules[functions.module[id]],
    };
    this.pattern = pattern;
    this.namesGroups = field === '';
    this.functions = Uint8Array.from({ length: functions.count }, (_, id) => (tests[field](id) ? 1 : 0));
    this.within = nodesWithin(profile, id => this.functions[id] === 1);
    this.countMatches();
    this.groups = new Map();
  }

  /** `before[node]`: matching nodes ahead of it, so that a difference tells whether a subtree holds any. */
  countMatches() {
    const { nodes, frames } = this.profile;
    this.before = new Int32Array(nodes.count + 1);
    for (let node = 0; node < nodes.count; node++) {
      const own = node > 0 ? this.functions[frames.function[nodes.frame[node]]] : 0;
      this.before[node + 1] = this.before[node] + own;
    }
  }

  matches(box) {
    if (box.frame >= 0) return this.functions[this.profile.frames.function[box.frame]] === 1;
    return box.group !== null && this.matchesGroup(box.group);
  }

  matchesGroup({ what, id }) {
    if (!this.namesGroups) return false;
    const key = what + id;
    if (!this.groups.has(key)) this.groups.set(key, this.pattern.test(groupLabel(this.profile, { what, id })));
    return this.groups.get(key);
  }

  /** Samples whose stack holds a match, each once; a match of a group's box takes all of its samples. */
  samples(selection, grouping) {
    const { threads } = this.profile;
    let sum = 0;
    for (let i = 0; i < selection.node.length; i++) {
      const thread = selection.thread[i];
      const found =
        this.within[selection.node[i]] === 1 ||
        (grouping !== 'none' && this.matchesGroup({ what: 'process', id: threads.process[thread] })) ||
        (grouping === 'thread' && this.matchesGroup({ what: 'thread', id: thread }));
      if (found) sum += selection.before[i + 1] - selection.before[i];
    }
    return sum;
  }

  /** Whether a box further away from the root than this one may match. */
  matchesBeyond(tree, box) {
    if (box.frame < 0 && !box.pieces.length) return true;
    const { end } = this.profile.nodes;
    for (let k = 0; k < box.pieces.length; k += 3) {
      const node = box.pieces[k];
      if (tree.away === 'callees' ? this.before[end[node]] > this.before[node + 1] : this.within[node]) return true;
    }
    return false;
  }

  /** Matching boxes with no other match between them and the root, widest first. */
  places(trees) {
    const found = [];
    for (const tree of trees) {
      const open = [tree.root];
      while (open.length && found.length < MOST_PLACES) {
        const box = open.pop();
        // two trees of one function share their root
        if (this.matches(box) && (box.parent || tree === trees[0])) found.push(box);
        else if (this.matchesBeyond(tree, box)) for (const child of tree.children(box)) open.push(child);
      }
    }
    return found.sort((a, b) => b.total - a.total);
  }
}

/** Name of a process or thread, and what follows it. */
function groupParts({ threads, processes }, { what, id }) {
  return what === 'process'
    ? { name: processes.name[id], suffix: ` (${processes.pid[id]})` }
    : { name: threads.name[id], suffix: ` (${threads.tid[id]})` };
}

function groupLabel(profile, group) {
  const { name, suffix } = groupParts(profile, group);
  return name + suffix;
}
