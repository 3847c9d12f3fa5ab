// Where the boxes are: rows of boxes from left to right, for one width and one zoom.

/** Height of a row in pixels, with the gap. */
const ROW = 20;

/** Most boxes of one that stands for several; more are divided once more, so that zooming gets to each of them. */
const MOST_IN_REST = 500;

/** A box narrower than this is not drawn; such siblings share one hatched box. */
const NARROWEST = 0.4;

/** A row: parallel arrays; `faded` where it lies between the root and the zoomed box. */
class Row {
  constructor(faded) {
    this.boxes = [];
    this.x = [];
    this.width = [];
    this.faded = faded;
  }

  put(box, x, width) {
    this.boxes.push(box);
    this.x.push(x);
    this.width.push(width);
  }

  /** The box at a horizontal position, or null. */
  at(x) {
    let index = lowerBound(this.x, x, 0, this.x.length);
    if (index === this.x.length || this.x[index] > x) index--;
    return index >= 0 && x < this.x[index] + Math.max(this.width[index], 1) ? this.boxes[index] : null;
  }
}

/** Rows of a tree, the root's first. */
function layoutTree(tree, zoomed, width) {
  const rows = [];
  for (let box = zoomed; box; box = box.parent) rows.unshift(new Row(box !== zoomed));
  for (let box = zoomed, row = rows.length - 1; box; box = box.parent, row--) rows[row].put(box, 0, width);
  const scale = zoomed.total ? width / zoomed.total : 0;
  const open = [{ box: zoomed, x: 0, row: rows.length - 1 }];
  while (open.length) {
    const { box, x, row } = open.pop();
    const placed = placeChildren(tree, box, x, scale);
    if (!placed.length) continue;
    rows[row + 1] ??= new Row(false);
    for (const { box: child, x, width } of placed) rows[row + 1].put(child, x, width);
    // the leftmost is taken up first, so that every row is filled from left to right
    for (let i = placed.length - 1; i >= 0; i--) {
      // what a box of several stands for is seen when it is zoomed
      if (!placed[i].box.isRest) open.push({ box: placed[i].box, x: placed[i].x, row: row + 1 });
    }
  }
  return rows;
}

/** The children of a box that are wide enough, and one box for all others. */
function placeChildren(tree, box, x, scale) {
  const children = tree.children(box);
  const placed = [];
  for (let i = 0; i < children.length; i++) {
    const width = children[i].total * scale;
    if (width < NARROWEST) {
      const rest = restOf(box, children, i);
      if (rest.total * scale >= NARROWEST) placed.push({ box: rest, x, width: rest.total * scale });
      break;
    }
    placed.push({ box: children[i], x, width });
    x += width;
  }
  return placed;
}

/** The box that stands for all children from `start` on. */
function restOf(box, children, start) {
  if (box.rest?.start !== start) {
    box.rest = makeRest(box, children.slice(start));
    box.rest.start = start;
  }
  return box.rest;
}

function makeRest(parent, children) {
  const rest = new Box(parent, -1, null);
  rest.isRest = true;
  rest.count = children.length;
  rest.total = children.reduce((sum, child) => sum + child.total, 0);
  rest.children = children;
  if (children.length > MOST_IN_REST) {
    const size = Math.max(MOST_IN_REST, Math.ceil(children.length / MOST_IN_REST));
    rest.children = [];
    for (let at = 0; at < children.length; at += size) rest.children.push(makeRest(rest, children.slice(at, at + size)));
  }
  return rest;
}

/**
 * Rows of one tree, or of callers above and callees below a function; from top to bottom.
 * `zoomed` has a box for each tree.
 */
function layoutTrees(trees, zoomed, width, flipped) {
  const [rows, above] = trees.map((tree, i) => layoutTree(tree, zoomed[i], width));
  // the function itself is in both trees
  if (above) rows.unshift(...above.slice(1).reverse());
  if (flipped) rows.reverse();
  rows.forEach((row, index) => row.boxes.forEach(box => (box.row = index)));
  return rows;
}
