// The bars: what they show of the state, and what their controls do to it.

/** Ancestors that are shown at the beginning and at the end of a long trail. */
const TRAIL_ENDS = [1, 4];

function showControls(app) {
  const { profile, state } = app;
  for (const mode of ['flame', 'callers', 'sandwich']) press(`mode-${mode}`, state.mode === mode);
  press('lines-button', state.lines);
  press('flip-button', state.flipped);
  press('table-button', app.table.visible);
  byId('grouping').value = state.grouping;
  byId('grouping').disabled = state.mode === 'sandwich';
  byId('process').value = String(state.process);
  fillThreads(app);
  byId('thread').value = String(state.thread);
  showFilters(app);
}

function press(id, pressed) {
  byId(id).setAttribute('aria-pressed', String(pressed));
}

/** Options of processes or threads, busiest first. */
function fillOptions(select, entries, total) {
  const options = entries.filter(({ count }) => count > 0).sort((a, b) => b.count - a.count).map(({ id, label, count }) =>
    element('option', { value: String(id), textContent: `${label}  ${percent(count, total)}` }));
  select.replaceChildren(element('option', { value: '-1', textContent: 'all' }), ...options);
}

function fillProcessOptions(app) {
  const { profile } = app;
  app.busy = samplesByThread(profile);
  app.sum = app.busy.byProcess.reduce((sum, count) => sum + count, 0);
  const entries = Array.from(app.busy.byProcess, (count, id) =>
    ({ id, count, label: groupLabel(profile, { what: 'process', id }) }));
  fillOptions(byId('process'), entries, app.sum);
}

function fillThreads(app) {
  const { profile, state } = app;
  const entries = Array.from(app.busy.byThread, (count, id) => ({ id, count }))
    .filter(({ id }) => state.process < 0 || profile.threads.process[id] === state.process)
    .map(entry => ({ ...entry, label: groupLabel(profile, { what: 'thread', id: entry.id }) }));
  fillOptions(byId('thread'), entries, app.sum);
}

/** The chips of hidden and focused things; a click takes one back. */
function showFilters(app) {
  const { profile, state } = app;
  byId('filters').replaceChildren(...state.filters.map(({ mode, what, id }, index) => {
    const isFunction = what === 'function';
    const name = isFunction ? profile.functions.name[id] + sourceSuffix(profile, id, 0) : groupLabel(profile, { what, id });
    const short = isFunction ? briefName(profile.functions.name[id]) : name;
    const label = `${mode === 'hide' ? 'without' : 'only'} ${short}`;
    const chip = element('button', { textContent: `${clipped(label)}  ✕`, title: `Undo: ${mode} ${clipped(name)}` });
    chip.addEventListener('click', () => app.removeFilter(index));
    return chip;
  }));
}

/** The way from the root to the zoomed box, as buttons. */
function showTrail(app) {
  const zoomed = app.zoomed.findLast(box => box.parent) ?? app.zoomed[0];
  const chain = [];
  for (let box = zoomed; box; box = box.parent) chain.unshift(box);
  const [head, tail] = TRAIL_ENDS;
  const left = chain.length - head - tail;
  const parts = [];
  chain.forEach((box, i) => {
    if (left > 1 && i >= head && i < head + left) {
      if (i === head) parts.push(element('span', { textContent: ` › … ${grouped(left)} more` }));
      return;
    }
    if (i) parts.push(element('span', { textContent: app.treeOf(box).away === 'callers' ? ' ‹ ' : ' › ' }));
    parts.push(trailButton(app, box, box === zoomed));
  });
  byId('ancestors').replaceChildren(...parts, element('span', { textContent: trailNote(app, zoomed) }));
  byId('reset').disabled = !app.zoomed.some(box => box.parent);
}

function trailButton(app, box, isLast) {
  const name = fullLabel(app, box);
  const shown = isLast ? name : briefLabel(app, box);
  const button = element('button', { textContent: clipped(shown), title: clipped(name), dir: 'ltr' });
  if (isLast) button.setAttribute('aria-current', 'true');
  button.addEventListener('click', () => {
    app.zoomTo(box);
    app.select(box);
  });
  return button;
}

function trailNote({ selection, sum, state }, zoomed) {
  const share = `${grouped(zoomed.total)} samples, ${percent(zoomed.total, selection.total)}`;
  const filtered = selection.total < sum ? ` of the ${grouped(selection.total)} shown` : '';
  return ` — ${share}${filtered}${state.mode === 'sandwich' ? ', with its callers and callees' : ''}`;
}

/** The buttons for the selected box, those that make sense for it. */
function showActions(app, box) {
  byId('actions').hidden = !box;
  byId('mode-sandwich').disabled = app.currentFunction() < 0 && app.state.function < 0;
  if (!box) return;
  const filter = filterFor(app.profile, 'hide', box);
  for (const button of byId('actions').children) {
    const { action } = button.dataset;
    button.disabled = action === 'sandwich' ? box.frame < 0 : action !== 'zoom' && action !== 'copy' && !filter;
  }
}

/** What the buttons below the graph, and the keys of the same meaning, do to the selected box. */
const ACTIONS = {
  zoom: (app, box) => app.zoomTo(box),
  sandwich: (app, box) => box.frame >= 0 && app.showSandwich(app.profile.frames.function[box.frame]),
  focus: (app, box) => app.addFilter('only', box),
  hide: (app, box) => app.addFilter('hide', box),
  copy: (app, box) => copyText(fullLabel(app, box)),
};

function act(app, action) {
  if (app.graph.selected) ACTIONS[action](app, app.graph.selected);
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // not allowed, or no secure context: the old way
    const area = element('textarea', { value: text });
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    byId('canvas').focus();
  }
  byId('detail-facts').textContent = 'Name copied.';
  byId('live').textContent = 'Name copied.';
}

function toggleTable(app) {
  app.table.section.hidden = app.table.visible;
  showControls(app);
  app.relayout();
  app.table.refresh();
  app.remember();
}

function toggleTheme(app) {
  app.setTheme(app.state.theme === 'dark' ? 'light' : 'dark');
  showLegend(app);
  app.table.refresh();
  app.remember();
}

function toggle(app, name) {
  app.state[name] = !app.state[name];
  app.rebuild();
}

function connectControls(app) {
  const on = (id, event, action) => byId(id).addEventListener(event, action);
  on('mode-flame', 'click', () => app.setMode('flame'));
  on('mode-callers', 'click', () => app.setMode('callers'));
  on('mode-sandwich', 'click', () => openSandwich(app));
  on('grouping', 'change', event => setAndRebuild(app, { grouping: event.target.value }));
  on('process', 'change', event => setAndRebuild(app, { process: Number(event.target.value), thread: -1 }));
  on('thread', 'change', event => setAndRebuild(app, { thread: Number(event.target.value) }));
  on('lines-button', 'click', () => toggle(app, 'lines'));
  on('flip-button', 'click', () => toggle(app, 'flipped'));
  on('query', 'input', event => app.setQuery(event.target.value));
  on('next-match', 'click', () => app.jump(1));
  on('previous-match', 'click', () => app.jump(-1));
  on('table-button', 'click', () => toggleTable(app));
  on('reset', 'click', () => app.reset());
  on('theme-button', 'click', () => toggleTheme(app));
  on('about-button', 'click', () => byId('about').showModal());
  on('warning', 'click', () => byId('about').showModal());
  on('help-button', 'click', () => byId('help').showModal());
  for (const button of byId('actions').children) {
    button.addEventListener('click', () => act(app, button.dataset.action));
  }
}

function setAndRebuild(app, change) {
  Object.assign(app.state, change);
  app.rebuild();
}

function openSandwich(app) {
  const id = app.currentFunction() >= 0 ? app.currentFunction() : app.state.function;
  if (id >= 0) app.showSandwich(id);
}

function connectMouse(app) {
  const { canvas } = app.graph;
  canvas.addEventListener('mousemove', event => {
    const box = app.graph.boxAt(event.offsetX, event.offsetY);
    app.hover(box);
    canvas.style.cursor = box ? 'pointer' : 'default';
    showTip(app, box, event.clientX, event.clientY);
  });
  const leave = () => {
    app.hover(null);
    showTip(app, null);
  };
  canvas.addEventListener('mouseleave', leave);
  app.graph.scroller.addEventListener('scroll', leave);
  canvas.addEventListener('click', event => {
    const box = app.graph.boxAt(event.offsetX, event.offsetY);
    if (!box) return;
    app.zoomTo(box);
    app.select(box);
    showTip(app, null);
  });
}
