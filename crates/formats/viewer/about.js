// What was recorded, how, and what is missing; and the help.

const KEYS = [
  ['Click, Enter', 'zoom into a box'],
  ['Esc, Backspace', 'one step back: clear the search, or zoom out'],
  ['0', 'back to the whole'],
  ['Arrows', 'move to callee, caller, neighbour'],
  ['/', 'search'],
  ['n, p', 'next and previous match'],
  ['r', 'callers of every innermost function, and back'],
  ['s', 'callers and callees of the selected function'],
  ['t', 'table of functions'],
  ['h', 'hide all stacks that hold the selected function, thread or process'],
  ['f', 'focus: keep only those stacks'],
  ['u', 'undo the last hide or focus'],
  ['c', 'copy the name'],
  ['g', 'group by nothing, process, thread'],
  ['l', 'tell source lines apart, where they are known'],
  ['o', 'root at the top or at the bottom'],
  ['d', 'dark or light'],
  ['i', 'about this recording'],
  ['?', 'this help'],
];

function fillHelp() {
  const rows = KEYS.map(([keys, what]) => {
    const names = keys.split(', ').flatMap((key, i) => [...(i ? [' '] : []), element('kbd', { textContent: key })]);
    return element('div', {}, element('dfn', {}, ...names), element('span', { textContent: what }));
  });
  document.getElementById('help-keys').append(...rows);
}

/** When the recording began, in the time zone of whoever reads. */
function startTime(about) {
  if (about.start === null) return '';
  const options = { dateStyle: 'medium', timeStyle: 'medium' };
  return new Intl.DateTimeFormat('en-GB', options).format(new Date(about.start * 1000));
}

function incomplete(stops) {
  return stops.filter(stop => !stop.whole).reduce((sum, stop) => sum + stop.count, 0);
}

const sumOf = rows => rows.reduce((sum, row) => sum + row.count, 0);

/** The line beside the title, and the warning where something is missing. */
function fillSummary({ about, samples }) {
  const total = samples.count.reduce((sum, count) => sum + count, 0);
  const parts = [`${grouped(total)} samples`, about.duration ? seconds(about.duration) : '',
    about.frequency ? `${about.frequency} Hz ${about.event}` : about.event, about.host, startTime(about)];
  document.getElementById('target').textContent = about.target || 'profile';
  document.getElementById('summary').textContent = parts.filter(part => part).join('  ·  ');
  document.title = `${about.target || 'profile'} – wholestack`;
  const warnings = [];
  const lost = sumOf(about.losses);
  const cut = incomplete(about.stops);
  if (lost) warnings.push(`${grouped(lost)} samples lost`);
  if (cut) warnings.push(`${percent(cut, sumOf(about.stops))} of user stacks incomplete`);
  const button = document.getElementById('warning');
  button.hidden = !warnings.length;
  button.textContent = warnings.join(', ');
  button.title = 'What is missing, and why';
}

function fillAbout({ about, samples, threads, processes }) {
  const total = samples.count.reduce((sum, count) => sum + count, 0);
  const facts = [
    ['Target', about.target],
    ['Command', about.command],
    ['Host', about.host],
    ['Kernel', about.kernel],
    ['Began', startTime(about)],
    ['Duration', about.duration ? seconds(about.duration) : ''],
    ['Sampling', about.frequency ? `${about.event}, ${about.frequency} per second and CPU` : about.event],
    ['Samples', total && about.frequency
      ? `${grouped(total)}, about ${seconds(total / about.frequency)} of CPU time` : grouped(total)],
    ['Threads', `${grouped(threads.tid.length)} in ${grouped(processes.pid.length)} processes`],
    ['Version', about.version ? `wholestack ${about.version}` : ''],
  ];
  const list = document.getElementById('about-facts');
  for (const [word, text] of facts.filter(([, text]) => text)) {
    list.append(element('dt', { textContent: word }), element('dd', { textContent: text, dir: 'ltr' }));
  }
  fillStops(about.stops);
  fillLosses(about.losses);
  fillInterpreters(about.interpreters);
  fillProcesses(about.statuses);
}

function fillStops(stops) {
  if (!stops.length) return;
  const whole = sumOf(stops);
  const rows = stops.map(({ reason, whole: isWhole, count }) =>
    [figureCell(grouped(count)), figureCell(percent(count, whole)), isWhole ? 'whole' : 'incomplete', reason]);
  addTable('about-stops', 'How the user stacks ended', ['Samples', 'Share', 'Stack', 'Reason'], rows);
}

function fillLosses(losses) {
  const section = document.getElementById('about-losses');
  if (losses.length) {
    addTable('about-losses', 'Lost samples', ['Samples', 'Cause'], losses.map(({ cause, count }) => [figureCell(grouped(count)), cause]));
  } else {
    section.append(element('h3', { textContent: 'Lost samples' }), element('p', { textContent: 'None.' }));
  }
}

/** A line for each interpreter: which one up to the first colon, then the evidence and what came of it. */
function fillInterpreters(lines) {
  if (!lines.length) return;
  const items = lines.map(line => {
    const [, which, rest] = /^(.*?)(?:: (.*))?$/s.exec(line);
    const item = element('li', { dir: 'ltr' }, element('b', { textContent: clipped(which) }));
    if (rest) item.append(element('span', { textContent: clipped(rest) }));
    return item;
  });
  document.getElementById('about-interpreters').append(element('h3', { textContent: 'Interpreters' }),
    element('ul', {}, ...items));
}

function fillProcesses(statuses) {
  if (!statuses.length) return;
  const rows = statuses.map(({ pid, name, samples, stops }) => {
    const whole = sumOf(stops);
    const ends = stops.map(({ reason, count }) => `${reason} ${percent(count, whole)}`).join(', ');
    return [figureCell(grouped(samples)), `${name} (${pid})`, ends];
  });
  addTable('about-processes', 'Processes', ['Samples', 'Process', 'How its user stacks ended'], rows);
}

function figureCell(text) {
  return element('td', { className: 'figure', textContent: text });
}

function addTable(id, title, heads, rows) {
  const head = element('tr', {}, ...heads.map((text, i) =>
    element('th', { scope: 'col', textContent: text, className: rows[0][i] instanceof Node ? 'figure' : '' })));
  const body = rows.map(cells => element('tr', {}, ...cells.map(cell =>
    cell instanceof Node ? cell : element('td', { textContent: cell, dir: 'ltr' }))));
  document.getElementById(id).append(element('h3', { textContent: title }),
    element('table', {}, element('thead', {}, head), element('tbody', {}, ...body)));
}
