// The profile: unpacked from the page into typed arrays. The Rust side is src/html/data.rs.

/** Reads numbers, columns and texts one after the other. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    return this.numbers(new Float64Array(1))[0];
  }

  /** Fills an array with LEB128 numbers. Multiplies instead of shifting: counts may exceed 32 bits. */
  numbers(values) {
    const { bytes } = this;
    let { at } = this;
    for (let i = 0; i < values.length; i++) {
      let byte = bytes[at++];
      let value = byte & 127;
      for (let scale = 128; byte & 128; scale *= 128) {
        byte = bytes[at++];
        value += (byte & 127) * scale;
      }
      values[i] = value;
    }
    this.at = at;
    return values;
  }

  column(ArrayType = Int32Array) {
    return this.numbers(new ArrayType(this.number()));
  }

  /** A column in which 0 means "none", as -1. */
  optional() {
    return this.column().map(value => value - 1);
  }

  text() {
    const length = this.number();
    const part = this.bytes.subarray(this.at, this.at + length);
    this.at += length;
    // a byte order mark is part of a name like any other character
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(part);
  }

  strings() {
    const shared = this.column();
    const rest = this.column();
    const rests = this.text();
    const strings = new Array(shared.length);
    let previous = '';
    let at = 0;
    for (let i = 0; i < strings.length; i++) {
      previous = previous.slice(0, shared[i]) + rests.slice(at, at + rest[i]);
      at += rest[i];
      strings[i] = previous;
    }
    return strings;
  }
}

async function unpack(base64) {
  const packed = atob(base64);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

/** Makes the profile from unpacked bytes. Node 0 is the root; it has no frame. */
function readProfile(bytes) {
  const reader = new Reader(bytes);
  const about = JSON.parse(reader.text());
  const strings = reader.strings();
  const names = runningSum(reader.column().map(unzigzag));
  const functions = {
    count: names.length,
    name: Array.from(names, string => strings[string]),
    kind: reader.column(Uint8Array),
    file: reader.optional(),
    line: reader.column(),
    module: reader.optional(),
  };
  const modules = Array.from(reader.column(), string => strings[string]);
  const frames = { function: reader.column(), line: reader.column(), inlined: reader.column(Uint8Array) };
  const nodes = readNodes(reader);
  const processes = {
    pid: reader.column(),
    name: Array.from(reader.column(), string => strings[string]),
    command: Array.from(reader.optional(), string => (string < 0 ? '' : strings[string])),
  };
  const threads = {
    process: reader.column(),
    tid: reader.column(),
    name: Array.from(reader.column(), string => strings[string]),
  };
  const samples = {
    node: runningSum(reader.column()),
    thread: reader.column(),
    count: reader.column(Float64Array),
  };
  return { about, strings, functions, modules, frames, nodes, processes, threads, samples };
}

/** The number that small codes of either sign stand for: 0, -1, 1, -2, 2, ... */
function unzigzag(code) {
  return code & 1 ? -(code + 1) / 2 : code / 2;
}

/** Adds to each value all that come before it, in place. */
function runningSum(values) {
  for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
  return values;
}

/**
 * The tree, depth first: `frame`, `parent` and `end` (one past the last node below) of each node.
 * In the file a node says how many levels up from a child of its predecessor it is.
 */
function readNodes(reader) {
  const up = reader.column();
  const frames = reader.column();
  const count = up.length + 1;
  const frame = new Int32Array(count);
  const parent = new Int32Array(count);
  const end = new Int32Array(count);
  frame.set(frames, 1);
  frame[0] = parent[0] = -1;
  for (let node = 1; node < count; node++) {
    let above = node - 1;
    for (let levels = up[node - 1]; levels > 0; levels--) above = parent[above];
    parent[node] = above;
  }
  for (let node = count - 1; node >= 0; node--) {
    if (end[node] === 0) end[node] = node + 1;
    if (node > 0 && end[parent[node]] < end[node]) end[parent[node]] = end[node];
  }
  return { count, frame, parent, end };
}
