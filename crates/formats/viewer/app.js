// The page's state, and what changes it.

/** A match narrower than this is zoomed into when it is jumped to. */
const NARROW_MATCH = 24;

class App {
  constructor(profile) {
    this.profile = profile;
    this.systemDark = matchMedia('(prefers-color-scheme: dark)');
    this.state = this.firstState();
    this.search = null;
    this.graph = new Graph(byId('canvas'), byId('scroller'), byId('pad'));
    this.graph.label = box => boxLabel(profile, box, this.state.lines);
    this.table = new FunctionTable(this);
    this.link = new Link(this);
  }

  firstState() {
    const { processes, about } = this.profile;
    return {
      /** `flame`, `callers` or `sandwich`; the latter is of `function`. */
      mode: 'flame',
      function: -1,
      grouping: processes.pid.length > 1 ? 'process' : 'none',
      process: -1,
      thread: -1,
      /** Hidden and focused, in the order they came. */
      filters: [],
      lines: about.lines,
      flipped: false,
      /** Null follows the system. */
      chosenTheme: null,
      theme: this.systemDark.matches ? 'dark' : 'light',
      query: '',
    };
  }

  /** Makes everything anew from the state; keeps the zoom as far as it still exists. */
  rebuild(path = this.trees ? pathOf(this.zoomed[0]) : []) {
    const { profile, state } = this;
    this.selection = selectSamples(profile, this.allFilters(), this.grouping);
    this.cachedFigures = null;
    const merged = mergedFrames(profile, state.lines);
    if (state.mode === 'sandwich') {
      this.trees = [CalleeTree.below(profile, this.selection, merged, state.function),
        CallerTree.above(profile, this.selection, merged, state.function)];
    } else {
      this.trees = [(state.mode === 'flame' ? CalleeTree : CallerTree).of(profile, this.selection, merged, this.grouping)];
    }
    this.zoomed = this.trees.map(tree => tree.root);
    if (state.mode !== 'sandwich') this.zoomed[0] = follow(this.trees[0], path);
    this.graph.hovered = null;
    this.setSelected(null);
    this.relayout();
    this.scrollToRoot();
    this.countMatches();
    this.table.refresh();
    showControls(this);
    showLegend(this);
    this.remember();
  }

  /** A sandwich is of one function, wherever it ran. */
  get grouping() {
    return this.state.mode === 'sandwich' ? 'none' : this.state.grouping;
  }

  allFilters() {
    const { filters, process, thread } = this.state;
    const all = [...filters];
    if (process >= 0) all.push({ mode: 'only', what: 'process', id: process });
    if (thread >= 0) all.push({ mode: 'only', what: 'thread', id: thread });
    return all;
  }

  relayout() {
    const { flipped, mode } = this.state;
    const rows = layoutTrees(this.trees, this.zoomed, this.graph.width, flipped);
    this.graph.setRows(rows, flipped && mode !== 'sandwich');
    showTrail(this);
  }

  scrollToRoot() {
    const { scroller } = this.graph;
    if (this.state.mode === 'sandwich') {
      scroller.scrollTop = (this.trees[0].root.row + 0.5) * ROW - this.graph.height / 2;
    } else {
      scroller.scrollTop = this.state.flipped ? scroller.scrollHeight : 0;
    }
  }

  /** Self and total samples of each function among the shown samples. */
  figures() {
    this.cachedFigures ??= functionFigures(this.profile, this.selection);
    return this.cachedFigures;
  }

  /** Which of the trees a box is in. */
  treeOf(box) {
    let root = box;
    while (root.parent) root = root.parent;
    return this.trees.find(tree => tree.root === root);
  }

  // zoom and selection

  zoomTo(box) {
    this.zoomed[this.trees.indexOf(this.treeOf(box))] = box;
    this.relayout();
    this.makeRoom(box);
    this.remember();
  }

  /** Scrolls so that a zoomed box has room for what lies beyond it. */
  makeRoom(box) {
    const { scroller, height } = this.graph;
    const beyondIsBelow = (this.treeOf(box) === this.trees[0]) !== this.state.flipped;
    const y = this.graph.rowTop(box.row);
    const before = beyondIsBelow ? y - scroller.scrollTop : scroller.scrollTop + height - y - ROW;
    if (before >= 0 && before < height / 2) return;
    scroller.scrollTop = beyondIsBelow ? y - 4 * ROW : y + 5 * ROW - height;
  }

  zoomOut() {
    const inner = [...this.zoomed].reverse().find(box => box.parent);
    if (!inner) return this.setSelected(null);
    this.zoomTo(inner.parent);
    this.select(inner);
  }

  /** No zoom, no selection; filters stay. */
  reset() {
    this.zoomed = this.trees.map(tree => tree.root);
    this.setSelected(null);
    this.relayout();
    this.scrollToRoot();
    this.remember();
  }

  setSelected(box) {
    this.graph.selected = box;
    this.graph.redraw();
    showDetails(this, box);
    showActions(this, box);
  }

  /** Selects a box, brings it into sight and tells of it. */
  select(box) {
    this.setSelected(box);
    this.graph.reveal(box);
    announce(this, box);
  }

  hover(box) {
    if (box === this.graph.hovered) return;
    this.graph.hovered = box;
    this.graph.redraw();
    showDetails(this, box ?? this.graph.selected);
  }

  // views

  setMode(mode) {
    this.state.mode = mode;
    this.rebuild([]);
  }

  showSandwich(id) {
    this.state.function = id;
    this.setMode('sandwich');
    this.select(this.trees[0].root);
  }

  /** The function that a key or button is about: the selected one, or in a sandwich its own. */
  currentFunction() {
    const { selected } = this.graph;
    if (selected && selected.frame >= 0) return this.profile.frames.function[selected.frame];
    return this.state.mode === 'sandwich' ? this.state.function : -1;
  }

  setTheme(chosen) {
    this.state.chosenTheme = chosen;
    this.state.theme = chosen ?? (this.systemDark.matches ? 'dark' : 'light');
    document.documentElement.dataset.theme = this.state.theme;
    byId('theme-button').textContent = this.state.theme === 'dark' ? 'Light' : 'Dark';
    this.graph.theme = this.state.theme;
    this.graph.colours = new Colours(this.profile, this.state.theme);
    this.graph.redraw();
  }

  // filters

  addFilter(mode, box) {
    const filter = filterFor(this.profile, mode, box);
    if (!filter) return;
    this.state.filters.push(filter);
    this.rebuild(pathOf(mode === 'hide' ? zoomOutside(this.zoomed[0], box) : this.zoomed[0]));
  }

  removeFilter(index) {
    this.state.filters.splice(index, 1);
    this.rebuild();
  }

  // search

  setQuery(text) {
    this.state.query = text;
    const input = byId('query');
    try {
      this.search = text ? new Search(this.profile, text) : null;
      input.setCustomValidity('');
    } catch (error) {
      this.search = null;
      input.setCustomValidity(error.message);
    }
    this.countMatches();
    this.table.refresh();
    this.remember();
  }

  countMatches() {
    const { search, selection, state } = this;
    this.graph.search = search;
    this.places = null;
    this.place = -1;
    this.found = search ? search.samples(selection, this.grouping) : 0;
    const share = byId('share');
    share.textContent = search ? percent(this.found, selection.total) : state.query ? 'not valid' : '';
    share.title = search
      ? `${grouped(this.found)} of ${grouped(selection.total)} samples have a match in their stack` : '';
    byId('next-match').disabled = byId('previous-match').disabled = !this.found;
    this.graph.redraw();
  }

  /** Goes to the next match, the widest first. */
  jump(step) {
    if (!this.search) return;
    this.places ??= this.search.places(this.trees);
    const count = this.places.length;
    if (!count) return;
    this.place = this.place < 0 && step < 0 ? count - 1 : (this.place + step + count) % count;
    const box = this.places[this.place];
    const wide = () => this.graph.placeOf(box)?.width >= NARROW_MATCH;
    if (!wide()) {
      this.zoomed = this.trees.map(tree => tree.root);
      this.relayout();
      if (!wide()) this.zoomTo(box);
    }
    this.select(box);
    byId('share').textContent = `${percent(this.found, this.selection.total)} · ${this.place + 1}/${count}`;
    this.remember();
  }

  remember() {
    this.link.save();
  }
}

function byId(id) {
  return document.getElementById(id);
}

/** The filter that keeps or drops what a box stands for; null for the root and for boxes of several functions. */
function filterFor({ frames }, mode, box) {
  if (box.group) return { mode, ...box.group };
  if (box.frame < 0) return null;
  return { mode, what: 'function', id: frames.function[box.frame] };
}

/** The zoomed box, or if that lies within `box`, the one that `box` is in. */
function zoomOutside(zoomed, box) {
  for (let above = zoomed; above; above = above.parent) if (above === box) return box.parent ?? box;
  return zoomed;
}

/** The way from the root to a box: frames, and groups. */
function pathOf(box) {
  const path = [];
  for (let at = box; at.parent; at = at.parent) if (!at.isRest) path.unshift({ frame: at.frame, group: at.group });
  return path;
}

/** The box at the end of a path, or the last that exists. */
function follow(tree, path) {
  let box = tree.root;
  for (const { frame, group } of path) {
    const next = tree.children(box).find(child => group
      ? child.group?.what === group.what && child.group.id === group.id
      : child.frame >= 0 && tree.merged[child.frame] === tree.merged[frame]);
    if (!next) break;
    box = next;
  }
  return box;
}
