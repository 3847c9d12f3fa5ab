// Qualified names of C++, Rust, Go, Java and others, taken apart into the segments of their paths.

/** An operator's name, from the word on: its symbols are no brackets, and its blanks separate nothing. */
const OPERATOR =
  /operator(?:\s*(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|&&|\|\||\+\+|--|[-+*/%^&|!=<>~,]=?)|\s+(?:new|delete)(?:\[\])?|\s+[\w:]+[\s*&]*)/y;

/** What follows the parameters of a member function, up to the end or to what lies within it. */
const QUALIFIERS = /(?: (?:const|volatile|noexcept|&&?))+(?=::|$)/y;

/** What stands in front of the type in a type. */
const TYPE_PREFIX = /^(?:[&*]|(?:mut|const|dyn|impl) )+/;

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** The operator's name that begins at a position; empty if none does. */
function operatorAt(name, at) {
  const within = at > 0 && /[\w$]/.test(name[at - 1]);
  return name[at] === 'o' && !within ? matchAt(OPERATOR, name, at) : '';
}

/** Position of the bracket that closes the one at `open`; -1 if none does. */
function closing(name, open) {
  let depth = 0;
  for (let i = open; i < name.length; i++) {
    const operator = operatorAt(name, i);
    if (operator) i += operator.length - 1;
    else if ('(<[{'.includes(name[i])) depth++;
    else if (')]}'.includes(name[i]) || (name[i] === '>' && name[i - 1] !== '-')) {
      if (--depth === 0) return i;
    }
  }
  return -1;
}

/** The parts before and after a word that is not within brackets; null if there is no such word. */
function splitOutside(text, word) {
  for (let i = 0; i < text.length; i++) {
    if ('(<[{'.includes(text[i])) {
      const close = closing(text, i);
      if (close < 0) return null;
      i = close;
    } else if (text.startsWith(word, i)) {
      return [text.slice(0, i), text.slice(i + word.length)];
    }
  }
  return null;
}

/** A name that is being taken apart. */
class PathParser {
  constructor(name) {
    this.name = name;
    this.at = 0;
    /** `separator` in front of it, and `text`, of each segment. */
    this.segments = [];
    this.separator = '';
    this.text = '';
    /** Segments of the trait in Rust's `<T as Trait>::f`. */
    this.trait = null;
    /** How many of the segments are those of `T` there. */
    this.typeLength = 0;
  }

  /** Whether all brackets match. */
  parse() {
    const { name } = this;
    while (this.at < name.length) {
      const c = name[this.at];
      const operator = operatorAt(name, this.at);
      if (operator) this.take(operator.length);
      else if (name.startsWith('::', this.at)) this.separate('::');
      else if ((c === '.' || c === '/') && this.text && this.at + 1 < name.length) this.separate(c);
      else if ('(<[{'.includes(c)) {
        if (!this.group()) return false;
      } else if (c === ' ') {
        if (!this.blank()) break;
      } else this.take(1);
    }
    this.separate('');
    return true;
  }

  take(length) {
    this.text += this.name.slice(this.at, this.at + length);
    this.at += length;
  }

  separate(separator) {
    if (this.text) this.segments.push({ separator: this.segments.length ? this.separator : '', text: this.text });
    this.text = '';
    this.separator = separator;
    this.at += separator.length;
  }

  /** Something in brackets: a part of the name, or left out. */
  group() {
    const { name, at } = this;
    const close = closing(name, at);
    if (close < 0) return false;
    const inner = name.slice(at + 1, close);
    this.at = close + 1;
    if (name[at] === '{') this.text += `{${withoutParameters(inner)}}`;
    else if (this.text) return true;
    // Go's receivers, Java's constructors, Python's nameless functions
    else if (this.separator === '.' || this.at - at === name.length) this.text = name.slice(at, this.at);
    else if (name[at] === '<' && (at === 0 || inner.startsWith('impl '))) return this.type(inner);
    else if (inner === 'anonymous namespace') this.text = `(${inner})`;
    return true;
  }

  /** Rust's `T`, `T as Trait`, `impl T` or `impl Trait for T`. */
  type(inner) {
    const [type, trait] = splitOutside(inner, ' as ') ?? splitOutside(inner, ' for ')?.reverse() ?? [inner, ''];
    const segments = typeSegments(type);
    if (!segments) return false;
    segments.forEach((segment, index) =>
      this.segments.push(index || !this.segments.length ? segment : { ...segment, separator: this.separator }));
    if (trait && this.segments.length === segments.length) {
      this.trait = typeSegments(trait);
      this.typeLength = segments.length;
    }
    return true;
  }

  /** What a blank separates: qualifiers, another bound, or a return type. False if the name ends here. */
  blank() {
    const { name, at } = this;
    const qualifiers = matchAt(QUALIFIERS, name, at);
    if (qualifiers) this.at += qualifiers.length;
    else if (name.startsWith(' + ', at) || name.startsWith(' -> ', at)) return false;
    else if (name.includes('(', at)) {
      this.segments = [];
      this.text = this.separator = '';
      this.at++;
    } else this.take(1);
    return true;
  }
}

/** Segments of a type without its references and arguments; null if its brackets do not match. */
function typeSegments(type) {
  const plain = type.replace(TYPE_PREFIX, '');
  if (/^(?:[[(]|(?:unsafe |extern \S+ )*fn\b)/.test(plain)) return [{ separator: '', text: plain }];
  return parsePath(plain)?.segments ?? null;
}

/** The kind of a closure without its parameters: `lambda(int)#1` becomes `lambda#1`. */
function withoutParameters(text) {
  const open = text.indexOf('(');
  const close = open < 0 ? -1 : closing(text, open);
  return close < 0 ? text : text.slice(0, open) + text.slice(close + 1);
}

/** A name's segments without arguments, parameters and return type; null if it is no qualified name. */
function parsePath(name) {
  const path = new PathParser(name);
  return path.parse() && path.segments.length ? path : null;
}
