// Names as they are shown: shortened by segments, so that what distinguishes a function stays visible.

/** Longest name that is taken apart; what is longer is only cut. */
const LONGEST_NAME = 2000;

/** Most segments of a shortened name. */
const MOST_SEGMENTS = 12;

/** Characters of a name in a button. */
const BRIEF = 30;

/** What compilers append to the names of clones and of adapters. */
const CLONE_SUFFIX =
  /(?:::\{shim:[^}]*\}|\.(?:isra|part|constprop|cold|warm|lto_priv|llvm|localalias)(?:\.\d+)*| \[clone [^\]]*\]| \(\.[^)]*\))+$/;

/** Names from perf maps that end in the file: `LazyCompile:*handler /srv/app.js:10:3`, `py::main:/srv/main.py`. */
const WITH_FILE = /^(.*?[^\s:])([ :])((?:\.{0,2}\/|file:|node:).*)$/s;

/** In front of such names: the tier, or the language. */
const TIER = /^(?:LazyCompile|Function|JS|Script|Eval|py:):/;

/** Segments that say nothing without the one before: closures, call operators, constructors, numbers of copies. */
const OPAQUE = /^(?:[{<].*|\$_\d+|'lambda.*|operator\(\)|func\d+|\d+)$/s;

/** Ever shorter forms of a name, the full one first. */
function shortForms(name) {
  if (name.length > LONGEST_NAME) return [name.slice(0, LONGEST_NAME) + '…'];
  if (name.startsWith('[')) {
    // a marker, or a module with an offset: its path may go
    const slash = name.lastIndexOf('/');
    return slash > 0 ? [name, '[' + name.slice(slash + 1)] : [name];
  }
  // what initialises a source file, whose name follows
  if (name.startsWith('_GLOBAL_')) return [name];
  const forms = [name];
  let bare = name.replace(CLONE_SUFFIX, '');
  const withFile = WITH_FILE.exec(name);
  if (withFile) {
    const [, before, separator, file] = withFile;
    bare = before.replace(TIER, '');
    forms.push(before + separator + baseName(file), before, bare);
  }
  const path = parsePath(bare);
  if (path?.trait) {
    const type = path.segments.slice(0, path.typeLength);
    const member = joined(path.segments.slice(path.typeLength));
    forms.push(`<${joined(type)} as ${joined(path.trait)}>::${member}`);
    forms.push(`<${suffixes(type).at(-1)} as ${suffixes(path.trait).at(-1)}>::${member}`);
  }
  if (path) forms.push(...suffixes(path.segments));
  return [...new Set(forms)];
}

/** The longest form that is brief, or else the shortest. */
function briefName(name) {
  const forms = shortForms(name);
  return forms.find(form => form.length <= BRIEF) ?? forms.at(-1);
}

/** Ever fewer of the last segments, never beginning with one that says nothing by itself. */
function suffixes(segments) {
  const first = Math.max(segments.length - MOST_SEGMENTS, 0);
  const forms = [joined(segments.slice(first))];
  for (let from = first + 1; from < segments.length; from++) {
    if (!OPAQUE.test(segments[from].text)) forms.push(joined(segments.slice(from)));
  }
  return forms;
}

function joined(segments) {
  return segments.map(({ separator, text }, index) => (index ? separator : '') + text).join('');
}

/** Last part of a path. */
function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Last part of the path of a source file; what is no path stays whole: `<string>`, `<frozen importlib._bootstrap>`. */
function fileName(path) {
  const name = (!/^<.*>$/s.test(path) && baseName(path)) || path;
  return name.length > LONGEST_NAME ? name.slice(0, LONGEST_NAME) + '…' : name;
}

/** A number with its digits grouped. */
function grouped(number) {
  return number.toLocaleString('en-US');
}

/** A share in percent, with as many digits as say something. */
function percent(part, whole) {
  if (!part) return '0 %';
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.01) return '< 0.01 %';
  return (share >= 99.95 ? '100' : share.toFixed(share >= 9.995 ? 1 : 2)) + ' %';
}

/** Seconds in a unit that reads well. */
function seconds(value) {
  if (value >= 7200) return (value / 3600).toFixed(1) + ' h';
  if (value >= 120) return (value / 60).toFixed(1) + ' min';
  if (value >= 1) return value.toFixed(value >= 10 ? 1 : 2) + ' s';
  return (value * 1000).toFixed(value >= 0.01 ? 0 : 1) + ' ms';
}
