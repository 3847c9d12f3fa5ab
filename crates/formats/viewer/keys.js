// The keyboard.

/** Keys that mean the same wherever the focus is, except in a field. */
const SHORTCUTS = {
  '/': () => byId('query').select(),
  '?': () => byId('help').showModal(),
  i: () => byId('about').showModal(),
  0: app => app.reset(),
  n: app => app.jump(1),
  p: app => app.jump(-1),
  N: app => app.jump(-1),
  r: app => app.setMode(app.state.mode === 'callers' ? 'flame' : 'callers'),
  s: openSandwich,
  t: toggleTable,
  d: toggleTheme,
  l: app => byId('lines-button').hidden || toggle(app, 'lines'),
  o: app => toggle(app, 'flipped'),
  g: app => {
    const next = (GROUPINGS.indexOf(app.state.grouping) + 1) % GROUPINGS.length;
    setAndRebuild(app, { grouping: GROUPINGS[next] });
  },
  h: app => act(app, 'hide'),
  f: app => act(app, 'focus'),
  c: app => act(app, 'copy'),
  u: app => app.state.filters.length && app.removeFilter(app.state.filters.length - 1),
  Escape: stepBack,
};

/** Keys that only the graph understands. */
const GRAPH_KEYS = {
  Enter: app => act(app, 'zoom'),
  ' ': app => act(app, 'zoom'),
  Backspace: app => app.zoomOut(),
  ArrowUp: app => moveVertically(app, -1),
  ArrowDown: app => moveVertically(app, 1),
  ArrowLeft: app => moveSideways(app, -1),
  ArrowRight: app => moveSideways(app, 1),
};

function connectKeys(app) {
  addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (event.target.matches('input, select, textarea')) return fieldKey(app, event);
    const isGraph = event.target === app.graph.canvas || event.target === document.body;
    const action = SHORTCUTS[event.key] ?? (isGraph ? GRAPH_KEYS[event.key] : undefined);
    if (!action) return;
    event.preventDefault();
    showTip(app, null);
    action(app);
  });
}

function fieldKey(app, event) {
  if (event.target.id === 'query' && event.key === 'Enter') app.jump(event.shiftKey ? -1 : 1);
  else if (event.key === 'Escape') {
    if (event.target.id === 'query') clearQuery(app);
    app.graph.canvas.focus();
  } else return;
  event.preventDefault();
}

function clearQuery(app) {
  byId('query').value = '';
  app.setQuery('');
}

function stepBack(app) {
  if (app.state.query) clearQuery(app);
  else app.zoomOut();
}

/** Up and down on the screen: towards the root or away from it, as the tree lies. */
function moveVertically(app, step) {
  const { selected } = app.graph;
  if (!selected) return app.select(app.zoomed[0]);
  const trees = app.trees;
  const down = app.state.flipped ? -step : step;
  let tree = app.treeOf(selected);
  let away = tree === trees[0] ? 1 : -1;
  if (trees.length > 1 && !selected.parent) {
    // the function of a sandwich is the root of both trees
    tree = trees[down > 0 ? 0 : 1];
    away = down;
  }
  const from = selected.parent ? selected : tree.root;
  const target = down === away ? widestChild(app, tree, from) : selected.parent;
  if (target) app.select(target.parent || tree === trees[0] ? target : trees[0].root);
}

/** The widest child that is drawn. */
function widestChild(app, tree, box) {
  return [tree.children(box)[0], box.rest].find(child => child && app.graph.placeOf(child));
}

function moveSideways(app, step) {
  const { selected, rows } = app.graph;
  if (!selected) return app.select(app.zoomed[0]);
  const boxes = rows[selected.row]?.boxes ?? [];
  const next = boxes[boxes.indexOf(selected) + step];
  if (next) app.select(next);
}
