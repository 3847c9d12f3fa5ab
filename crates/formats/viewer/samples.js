// Which samples are shown, in the order of the tree, per group.

/** How samples are grouped: the levels of boxes between the root and the stacks. */
const GROUPINGS = ['none', 'process', 'thread'];

/**
 * A filter keeps (`only`) or drops (`hide`) the samples of a thread, of a process, or whose stack holds a function.
 * @typedef {{mode: 'hide'|'only', what: 'function'|'process'|'thread', id: number}} Filter
 */

/**
 * The samples that pass all filters. `node` is sorted within each group, so that the samples below a node of the
 * tree are a range; `before[i]` is how many samples come before entry i, so that a range's weight is a difference.
 */
function selectSamples(profile, filters, grouping) {
  const { samples, threads } = profile;
  const passes = sampleTest(profile, filters);
  const groupOf = { none: () => 0, process: thread => threads.process[thread], thread: thread => thread }[grouping];
  const members = new Map();
  for (let i = 0; i < samples.node.length; i++) {
    if (!passes(i)) continue;
    const group = groupOf(samples.thread[i]);
    if (!members.has(group)) members.set(group, []);
    members.get(group).push(i);
  }
  const count = [...members.values()].reduce((sum, list) => sum + list.length, 0);
  const selection = {
    node: new Int32Array(count),
    thread: new Int32Array(count),
    before: new Float64Array(count + 1),
    groups: [],
  };
  let at = 0;
  for (const [id, list] of members) {
    const from = at;
    for (const sample of list) {
      selection.node[at] = samples.node[sample];
      selection.thread[at] = samples.thread[sample];
      selection.before[at + 1] = selection.before[at] + samples.count[sample];
      at++;
    }
    selection.groups.push({ id, from, to: at });
  }
  selection.total = selection.before[count];
  return selection;
}

/** The test whether a sample passes all filters. */
function sampleTest(profile, filters) {
  const { samples, threads } = profile;
  const tests = filters.map(({ mode, what, id }) => {
    const keep = mode === 'only';
    if (what === 'thread') return sample => (samples.thread[sample] === id) === keep;
    if (what === 'process') return sample => (threads.process[samples.thread[sample]] === id) === keep;
    const within = nodesWithin(profile, own => own === id);
    return sample => (within[samples.node[sample]] === 1) === keep;
  });
  return sample => tests.every(test => test(sample));
}

/** For each node 1 if the function of the node, or of one towards the root, passes the test. */
function nodesWithin({ nodes, frames }, test) {
  const within = new Uint8Array(nodes.count);
  for (let node = 1; node < nodes.count; node++) {
    if (within[nodes.parent[node]] || test(frames.function[nodes.frame[node]])) within[node] = 1;
  }
  return within;
}

/** Samples per process and per thread of the whole profile. */
function samplesByThread({ samples, threads, processes }) {
  const byThread = new Float64Array(threads.tid.length);
  const byProcess = new Float64Array(processes.pid.length);
  for (let i = 0; i < samples.node.length; i++) {
    byThread[samples.thread[i]] += samples.count[i];
    byProcess[threads.process[samples.thread[i]]] += samples.count[i];
  }
  return { byThread, byProcess };
}

/** First entry of `sorted` in [from, to) that is not below `value`; `to` if there is none. */
function lowerBound(sorted, value, from, to) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}
