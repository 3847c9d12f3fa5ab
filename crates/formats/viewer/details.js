// What is said of a box: in the tip at the mouse, in the bar below the graph, and to screen readers.

/** Makes an element; strings among its children become text, never markup. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Longest name that is put into the page's text in one piece. */
const LONGEST_TEXT = 4000;

function clipped(text) {
  return text.length > LONGEST_TEXT ? text.slice(0, LONGEST_TEXT) + '…' : text;
}

/** Name of a box and what follows it where there is room: where it is in the source, the id of a process. */
function boxLabel(profile, box, withLines) {
  const { frames, functions } = profile;
  if (box.isRest) return { name: `${grouped(box.count)} more`, suffix: '' };
  if (box.group) return groupParts(profile, box.group);
  if (box.frame < 0) return { name: 'all', suffix: '' };
  const id = frames.function[box.frame];
  const line = withLines ? frames.line[box.frame] : 0;
  return { name: functions.name[id], suffix: sourceSuffix(profile, id, line), hasLine: line > 0 };
}

/** What follows a function's name: file and line if there is a line, the file of a Python function in any case. */
function sourceSuffix({ about, functions, strings }, id, line) {
  const file = functions.file[id] >= 0 ? fileName(strings[functions.file[id]]) : null;
  if (file !== null && line) return ` (${file}:${line})`;
  return file && about.kinds[functions.kind[id]] === 'python' ? ` (${file})` : '';
}

/** Where a frame's function is, as far as known: source file and line, and module. */
function sourceOf({ frames, functions, strings, modules }, frame, withLines) {
  const id = frames.function[frame];
  const file = functions.file[id] >= 0 ? strings[functions.file[id]] : '';
  const line = (withLines && frames.line[frame]) || functions.line[id];
  const module = functions.module[id] >= 0 ? modules[functions.module[id]] : '';
  return { source: file && line ? `${file}:${line}` : file, module };
}

/** The facts about a box, as pairs of a word and a text. */
function boxFacts(app, box) {
  const { profile, selection, state } = app;
  const { frequency } = profile.about;
  const whole = selection.total;
  const amount = count => `${grouped(count)} (${percent(count, whole)})`;
  const facts = [['samples', amount(box.total)]];
  if (frequency) facts.push(['CPU time', '≈ ' + seconds(box.total / frequency)]);
  if (box.isRest) return facts;
  const tree = app.treeOf(box);
  if (tree.away === 'callees') facts.splice(1, 0, ['self', amount(tree.self(box))]);
  if (box.group?.what === 'process') {
    const command = profile.processes.command[box.group.id];
    if (command) facts.push(['command', clipped(command)]);
  }
  if (box.frame < 0) return facts;
  const id = profile.frames.function[box.frame];
  const { self, total } = app.figures();
  if (total[id] !== box.total || tree.away === 'callers') {
    facts.push(['function total', `${amount(total[id])}, self ${amount(self[id])}`]);
  }
  const { source, module } = sourceOf(profile, box.frame, state.lines);
  facts.push(['kind', paletteName(kindName(profile, box.frame), profile.frames.inlined[box.frame])]);
  if (source) facts.push(['source', source]);
  if (module) facts.push(['module', module]);
  return facts;
}

function fullLabel(app, box) {
  const { name, suffix } = boxLabel(app.profile, box, app.state.lines);
  return name + suffix;
}

/** The label of a box without what may be left out. */
function briefLabel(app, box) {
  return box.frame >= 0 ? briefName(boxLabel(app.profile, box, false).name) : fullLabel(app, box);
}

/** The bar below the graph. */
function showDetails(app, box) {
  const name = document.getElementById('detail-name');
  const facts = document.getElementById('detail-facts');
  name.parentElement.classList.toggle('empty', !box);
  name.textContent = box ? clipped(fullLabel(app, box)) : 'Click a box to zoom; hover it to read it';
  facts.textContent = box
    ? boxFacts(app, box).map(([word, text]) => (word === 'samples' ? `${text} samples` : `${word} ${text}`)).join('  ·  ')
    : 'Press ? for all keys';
}

/** Tells screen readers about the selected box. */
function announce(app, box) {
  const text = boxFacts(app, box).map(([word, text]) => `${word} ${text}`).join(', ');
  document.getElementById('live').textContent = `${fullLabel(app, box).slice(0, 300)}: ${text}`;
}

/** The tip at the mouse. */
function showTip(app, box, x, y) {
  const tip = document.getElementById('tip');
  tip.hidden = !box;
  if (!box) return;
  const list = element('dl');
  for (const [word, text] of boxFacts(app, box)) {
    list.append(element('dt', { textContent: word }), element('dd', { textContent: clipped(text), dir: 'ltr' }));
  }
  tip.replaceChildren(element('div', { className: 'name', dir: 'ltr', textContent: clipped(fullLabel(app, box)) }), list);
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(x + 14, innerWidth - width - 8);
  const below = y + 18;
  tip.style.left = Math.max(left, 8) + 'px';
  tip.style.top = Math.max(below + height > innerHeight - 8 ? y - height - 12 : below, 8) + 'px';
}

/** The legend: the kinds that occur, each with the share of samples that ended in it. */
function showLegend(app) {
  const { profile, selection, state } = app;
  const { frames } = profile;
  const ended = new Map();
  for (let frame = 0; frame < frames.function.length; frame++) {
    ended.set(paletteName(kindName(profile, frame), frames.inlined[frame]), 0);
  }
  for (let i = 0; i < selection.node.length; i++) {
    const frame = profile.nodes.frame[selection.node[i]];
    if (frame < 0) continue;
    const name = paletteName(kindName(profile, frame), frames.inlined[frame]);
    ended.set(name, ended.get(name) + selection.before[i + 1] - selection.before[i]);
  }
  const place = name => profile.about.kinds.indexOf(name.replace(/ inlined$/, '')) + (name.endsWith(' inlined') ? 0.5 : 0);
  const entries = [...ended.keys()].sort((a, b) => place(a) - place(b)).map(name =>
    element('li', {}, swatch(state.theme, name), LEGEND_WORDS[name] ?? name,
      element('b', { textContent: percent(ended.get(name), selection.total) })));
  document.getElementById('legend').replaceChildren(...entries);
}

/** Words of the legend that say more than the kind's name. */
const LEGEND_WORDS = { marker: 'no frame' };

function swatch(theme, name) {
  const square = element('span', { className: 'swatch' });
  square.style.background = shades(theme, name)[0];
  return square;
}
