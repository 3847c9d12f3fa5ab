// The table of functions: the same figures as text, sortable, and filtered by the search.

/** Rows that are added at a time. */
const ROWS_AT_A_TIME = 300;

/** Width of the table's text in widths of the graph's. */
const TABLE_TEXT = 13 / 12;

/** Width of what else is in the column of names: its padding and the square of the kind. */
const BESIDE_NAME = 38;

/** Self and total samples of each function; a function that calls itself counts once per stack. */
function functionFigures({ nodes, frames, functions }, selection) {
  const own = new Float64Array(nodes.count);
  for (let i = 0; i < selection.node.length; i++) {
    own[selection.node[i]] += selection.before[i + 1] - selection.before[i];
  }
  const below = own.slice();
  for (let node = nodes.count - 1; node > 0; node--) below[nodes.parent[node]] += below[node];
  const self = new Float64Array(functions.count);
  const total = new Float64Array(functions.count);
  // the end of the subtree in which a function was last seen: what lies before it is recursion
  const seenUntil = new Int32Array(functions.count);
  for (let node = 1; node < nodes.count; node++) {
    const id = frames.function[nodes.frame[node]];
    self[id] += own[node];
    if (node < seenUntil[id]) continue;
    total[id] += below[node];
    seenUntil[id] = nodes.end[node];
  }
  return { self, total };
}

class FunctionTable {
  constructor(app) {
    this.app = app;
    this.section = document.getElementById('functions');
    this.body = document.getElementById('rows');
    this.sort = 'self';
    this.shown = ROWS_AT_A_TIME;
    for (const head of this.section.querySelectorAll('th')) {
      head.querySelector('button').addEventListener('click', () => this.sortBy(head.dataset.sort));
    }
    document.getElementById('more-button').addEventListener('click', () => {
      this.shown += ROWS_AT_A_TIME;
      this.fill();
    });
    this.body.addEventListener('click', event => this.open(event));
    this.body.addEventListener('keydown', event => this.key(event));
  }

  get visible() {
    return !this.section.hidden;
  }

  sortBy(column) {
    this.sort = column;
    this.refresh();
    this.app.remember();
  }

  /** Fills the table anew, from its top. */
  refresh() {
    if (!this.visible) return;
    this.shown = ROWS_AT_A_TIME;
    this.section.scrollTop = 0;
    this.ids = this.sortedFunctions();
    for (const head of this.section.querySelectorAll('th')) {
      const own = head.dataset.sort === this.sort;
      if (own) head.setAttribute('aria-sort', this.sort === 'name' ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    }
    this.fill();
  }

  sortedFunctions() {
    const { profile, search } = this.app;
    const { self, total } = this.app.figures();
    const ids = [];
    for (let id = 0; id < profile.functions.count; id++) {
      if (total[id] > 0 && (!search || search.functions[id])) ids.push(id);
    }
    // the functions' numbers are in the order of their names
    const orders = {
      self: (a, b) => self[b] - self[a] || total[b] - total[a] || a - b,
      total: (a, b) => total[b] - total[a] || self[b] - self[a] || a - b,
      name: (a, b) => a - b,
    };
    return ids.sort(orders[this.sort]);
  }

  fill() {
    const { self, total } = this.app.figures();
    this.room = this.section.querySelector('th[data-sort=name]').clientWidth - BESIDE_NAME;
    const rows = this.ids.slice(0, this.shown).map(id => this.row(id, self[id], total[id]));
    if (!rows.length) rows.push(element('tr', {}, element('td', { colSpan: 3, textContent: 'No function matches.' })));
    this.body.replaceChildren(...rows);
    document.getElementById('more-rows').hidden = this.ids.length <= this.shown;
    document.getElementById('more-button').textContent = `Show more (${grouped(this.ids.length - this.shown)} left)`;
  }

  row(id, self, total) {
    const { profile, state } = this.app;
    const { functions } = profile;
    const name = clipped(functions.name[id]);
    const { short, place } = this.home(id);
    const cell = element('td', { title: place ? `${name}\n${clipped(place)}` : name, dir: 'ltr' },
      swatch(state.theme, profile.about.kinds[functions.kind[id]] ?? 'other'), element('b', { textContent: this.fitting(functions.name[id]) }));
    if (short) cell.append(element('span', { className: 'module', textContent: clipped(short) }));
    const row = element('tr', { tabIndex: 0 }, this.figure(self), this.figure(total), cell);
    row.dataset.function = id;
    return row;
  }

  /** Where a function comes from, in short and in full: its module, or where it begins in the source if it is in none. */
  home(id) {
    const { functions, modules, strings } = this.app.profile;
    const module = functions.module[id] >= 0 ? modules[functions.module[id]] : '';
    if (module || functions.file[id] < 0) return { short: baseName(module), place: module };
    const file = strings[functions.file[id]];
    const line = functions.line[id] ? `:${functions.line[id]}` : '';
    return { short: fileName(file) + line, place: file + line };
  }

  /** The longest form of a name that fits into its column; it has the full one as its title. */
  fitting(name) {
    const forms = this.app.graph.formsOf(name, true);
    return (forms.find(({ width }) => width * TABLE_TEXT <= this.room) ?? forms.at(-1)).text;
  }

  figure(count) {
    const whole = this.app.selection.total;
    const bar = element('i');
    bar.style.setProperty('--share', whole ? ((100 * count) / whole).toFixed(1) + '%' : '0');
    return element('td', { className: 'figure' }, bar,
      element('span', { className: 'count', textContent: grouped(count) }),
      element('span', { textContent: percent(count, whole) }));
  }

  open(event) {
    const row = event.target.closest('tr[data-function]');
    if (row) this.app.showSandwich(Number(row.dataset.function));
  }

  key(event) {
    const steps = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' };
    if (event.key in steps) event.target.closest('tr')?.[steps[event.key]]?.focus();
    else if (event.key === 'Enter') this.open(event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
