// The view in the page's address, so that a link comes back to it.

/** Pause after the last change before the address is set: browsers limit how often that may happen. */
const PAUSE = 300;

class Link {
  constructor(app) {
    this.app = app;
    this.timer = 0;
    addEventListener('hashchange', () => {
      if (location.hash.slice(1) === this.written) return;
      this.restore();
    });
  }

  save() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), PAUSE);
  }

  write() {
    this.written = this.text();
    history.replaceState(null, '', '#' + this.written);
  }

  text() {
    const { state, table, zoomed } = this.app;
    const plain = this.app.firstState();
    const parts = new URLSearchParams();
    const put = (name, value, usual) => value !== usual && parts.set(name, value);
    put('view', state.mode, 'flame');
    if (state.mode === 'sandwich') put('function', state.function);
    put('group', state.grouping, plain.grouping);
    put('process', state.process, -1);
    put('thread', state.thread, -1);
    put('filter', state.filters.map(({ mode, what, id }) => `${mode}-${what}-${id}`).join(','), '');
    put('lines', Number(state.lines), Number(plain.lines));
    put('flip', Number(state.flipped), 0);
    put('theme', state.chosenTheme, null);
    put('table', table.visible ? table.sort : '', '');
    put('q', state.query, '');
    if (zoomed[0].parent && state.mode !== 'sandwich') put('at', placeText(this.app, zoomed[0]));
    return parts.toString();
  }

  /** Takes over what the address says; what does not exist in this profile is ignored. */
  restore() {
    const { app } = this;
    const { profile } = app;
    this.written = location.hash.slice(1);
    const parts = new URLSearchParams(this.written);
    const number = (name, limit) => boundedNumber(parts.get(name), limit);
    const state = app.firstState();
    state.function = number('function', profile.functions.count);
    const view = parts.get('view');
    if (view === 'callers' || (view === 'sandwich' && state.function >= 0)) state.mode = view;
    if (GROUPINGS.includes(parts.get('group'))) state.grouping = parts.get('group');
    state.process = number('process', profile.processes.pid.length);
    state.thread = number('thread', profile.threads.tid.length);
    state.filters = (parts.get('filter') ?? '').split(',').map(text => parseFilter(profile, text)).filter(Boolean);
    if (parts.has('lines')) state.lines = parts.get('lines') === '1';
    state.flipped = parts.get('flip') === '1';
    const theme = parts.get('theme');
    app.state = state;
    app.setTheme(theme === 'dark' || theme === 'light' ? theme : null);
    const sort = parts.get('table');
    app.table.section.hidden = !sort;
    if (['self', 'total', 'name'].includes(sort)) app.table.sort = sort;
    byId('query').value = parts.get('q') ?? '';
    app.rebuild(parsePlace(app, parts.get('at') ?? ''));
    app.setQuery(byId('query').value);
  }
}

/** A whole number from 0 to below `limit`; -1 for all else. */
function boundedNumber(text, limit) {
  const value = /^\d{1,15}$/.test(text ?? '') ? Number(text) : -1;
  return value < limit ? value : -1;
}

function parseFilter(profile, text) {
  const [, mode, what, id] = /^(hide|only)-(function|process|thread)-(\d+)$/.exec(text) ?? [];
  if (!mode) return null;
  const limits = {
    function: profile.functions.count,
    process: profile.processes.pid.length,
    thread: profile.threads.tid.length,
  };
  const bounded = boundedNumber(id, limits[what]);
  return bounded < 0 ? null : { mode, what, id: bounded };
}

/**
 * A box as text: its group, and a node of the profile's tree with the number of frames from there; a path of all
 * frames would not fit into an address.
 */
function placeText(app, box) {
  let at = box.isRest ? box.parent : box;
  const innermost = at;
  let frames = 0;
  for (; at && at.frame >= 0; at = at.parent) frames++;
  const group = at?.group ? `${at.group.what}-${at.group.id}` : '';
  return frames ? `${group}.${app.trees[0].place(innermost)}.${frames}` : group;
}

/** The path that a text stands for. */
function parsePlace(app, text) {
  const { profile, state } = app;
  const { nodes } = profile;
  const [group, nodeText, countText] = text.split('.');
  const path = parseGroup(profile, group);
  const node = boundedNumber(nodeText, nodes.count);
  const count = boundedNumber(countText, nodes.count);
  if (node < 0) return path;
  const frames = [];
  for (let at = node; at > 0 && frames.length < count; at = nodes.parent[at]) {
    frames.push({ frame: nodes.frame[at], group: null });
  }
  return path.concat(state.mode === 'flame' ? frames.reverse() : frames);
}

function parseGroup({ threads }, text) {
  const [, what, id] = /^(process|thread)-(\d+)$/.exec(text) ?? [];
  if (what === 'process') return [{ frame: -1, group: { what, id: Number(id) } }];
  const thread = what ? boundedNumber(id, threads.tid.length) : -1;
  if (thread < 0) return [];
  return [{ frame: -1, group: { what: 'process', id: threads.process[thread] } },
    { frame: -1, group: { what: 'thread', id: thread } }];
}
