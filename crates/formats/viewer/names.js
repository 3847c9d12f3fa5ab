// Names as they are shown: shortened by segments, so that what distinguishes a function stays visible.

/** Longest name that is taken apart; what is longer is only cut. */
const LONGEST_NAME = 2000;

/** What compilers append to the names of clones. */
const CLONE_SUFFIX = /(\.(isra|part|constprop|cold|lto_priv|llvm|localalias)(\.\d+)*)+$/;

/** Ever shorter forms of a name, the full one first. */
function shortForms(name) {
  if (name.length > LONGEST_NAME) return [name.slice(0, LONGEST_NAME) + '…'];
  const forms = [name];
  if (name.startsWith('[')) {
    // a marker, or a module with an offset: its path may go
    const slash = name.lastIndexOf('/');
    if (slash > 0) forms.push('[' + name.slice(slash + 1));
    return forms;
  }
  const bare = withoutNested(name).replace(CLONE_SUFFIX, '');
  if (bare !== name) forms.push(bare);
  const segments = splitSegments(bare);
  // a closure says nothing without the function it is in
  const fewest = 1 + [...segments].reverse().findIndex(segment => !/^(::|\.)?\{/.test(segment));
  for (let keep = Math.min(segments.length - 1, 3); fewest > 0 && keep >= fewest; keep--) {
    const last = segments.slice(-keep);
    last[0] = last[0].replace(/^(::|[./])/, '');
    forms.push(last.join(''));
  }
  return forms;
}

/** The name without arguments of functions and templates: `a<b>::c(d)` becomes `a::c`. */
function withoutNested(name) {
  // some brackets are part of the name: operators, anonymous namespaces, Go's `(*T).f`, Rust's `<T as Trait>::f`
  const operator = name.search(/\boperator\b/);
  let out = '';
  let depth = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (operator >= 0 && i >= operator) {
      out += name.slice(operator).replace(/^(operator\s*(?:\(\)|[^\s(]+|[^(]+))\(.*$/s, '$1');
      break;
    }
    if (c === '<' || c === '(') {
      if (depth === 0 && (i === 0 || name[i - 1] === '.' || name.startsWith('(anonymous namespace)', i))) {
        const close = closing(name, i);
        if (close < 0) return name;
        out += name.slice(i, close + 1);
        i = close;
        continue;
      }
      depth++;
    } else if ((c === '>' && name[i - 1] !== '-') || c === ')') {
      depth = Math.max(depth - 1, 0);
    } else if (depth === 0) {
      out += c;
    }
  }
  return depth === 0 ? out.replace(/::(?=::)/g, '').replace(/\s+const$/, '').trim() || name : name;
}

/** Position of the bracket that closes the one at `open`; -1 if none does. */
function closing(name, open) {
  let depth = 0;
  for (let i = open; i < name.length; i++) {
    if (name[i] === '<' || name[i] === '(') depth++;
    else if ((name[i] === '>' && name[i - 1] !== '-') || name[i] === ')') {
      if (--depth === 0) return i;
    }
  }
  return -1;
}

/** Segments with the separator in front of each but the first: `a::b.c` is `a`, `::b`, `.c`. */
function splitSegments(name) {
  const segments = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (c === '<' || c === '(' || c === '{') depth++;
    else if (c === '>' || c === ')' || c === '}') depth = Math.max(depth - 1, 0);
    else if (depth === 0 && i > start && (name.startsWith('::', i) || ((c === '.' || c === '/') && i + 1 < name.length))) {
      segments.push(name.slice(start, i));
      start = i;
      if (c === ':') i++;
    }
  }
  segments.push(name.slice(start));
  return segments;
}

/** Last part of a path. */
function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
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
