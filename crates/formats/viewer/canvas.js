// Draws the rows that can be seen. The canvas is as large as the window's part for it; only the pad behind it is as
// high as the graph, so that deep stacks scroll without a huge canvas.

const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif";

/** Space between the edge of a box and its text. */
const MARGIN = 5;

/** A name that is cut keeps at least as many characters, or it is not shown at all. */
const FEWEST_CHARACTERS = 3;

class Graph {
  constructor(canvas, scroller, pad) {
    this.canvas = canvas;
    this.scroller = scroller;
    this.pad = pad;
    this.context = canvas.getContext('2d', { alpha: false });
    this.rows = [];
    this.offset = 0;
    this.selected = null;
    this.hovered = null;
    this.search = null;
    this.theme = 'light';
    this.label = null;
    this.colours = null;
    this.pending = 0;
    this.forms = new Map();
    this.widths = this.characterWidths();
    scroller.addEventListener('scroll', () => this.redraw());
  }

  get width() {
    return this.scroller.clientWidth;
  }

  get height() {
    return this.scroller.clientHeight;
  }

  /** Rows from top to bottom; `atBottom` says where those stand that do not fill the height. */
  setRows(rows, atBottom) {
    this.rows = rows;
    const height = Math.max(rows.length * ROW + ROW, this.height);
    this.pad.style.height = height + 'px';
    this.offset = atBottom ? height - rows.length * ROW : 0;
    this.redraw();
  }

  redraw() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  draw() {
    const { context, width, height } = this;
    this.fitCanvas(width, height);
    const css = getComputedStyle(document.documentElement);
    context.fillStyle = css.getPropertyValue('--back');
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = 'middle';
    context.direction = 'ltr';
    this.hatching = this.makeHatching();
    const top = this.scroller.scrollTop;
    const first = Math.max(Math.floor((top - this.offset) / ROW), 0);
    const last = Math.min(Math.ceil((top + height - this.offset) / ROW), this.rows.length);
    for (let index = first; index < last; index++) this.drawRow(this.rows[index], this.rowTop(index) - top);
    this.outline(this.hovered, css.getPropertyValue('--text'), 1.5);
    this.outline(this.selected, css.getPropertyValue('--accent'), 2.5);
  }

  /** Where a row begins, in the pad. */
  rowTop(index) {
    return index * ROW + this.offset;
  }

  fitCanvas(width, height) {
    const { canvas, context } = this;
    const ratio = devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
      canvas.style.width = width + 'px';
      canvas.style.height = height + 'px';
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  drawRow(row, y) {
    const { context, search } = this;
    const palette = PALETTE[this.theme];
    for (let i = 0; i < row.boxes.length; i++) {
      const box = row.boxes[i];
      const x = row.x[i];
      const width = row.width[i];
      const found = search !== null && search.matches(box);
      const quiet = row.faded || (search !== null && !found);
      context.globalAlpha = quiet ? (search ? 0.38 : 0.6) : 1;
      context.fillStyle = found ? palette.match : this.colours.fill(box);
      // a gap between boxes, as long as there is room for one; a match is never thinner than a line
      const drawn = width > 3 ? width - 1 : found ? Math.max(width, 1.5) : width;
      context.fillRect(x, y, drawn, ROW - 1);
      if (!found && this.colours.isHatched(box)) {
        context.fillStyle = this.hatching;
        context.fillRect(x, y, drawn, ROW - 1);
      }
      if (width > 2 * MARGIN + 12) {
        context.globalAlpha = quiet ? 0.8 : 1;
        context.fillStyle = found ? palette.matchText : palette.text;
        const text = this.fit(box, width - 2 * MARGIN);
        if (text) context.fillText(text, x + MARGIN, y + ROW / 2);
      }
    }
    context.globalAlpha = 1;
  }

  outline(box, colour, thickness) {
    const row = box && this.rows[box.row];
    const index = row ? row.boxes.indexOf(box) : -1;
    if (index < 0) return;
    const { context } = this;
    const inset = thickness / 2;
    const y = this.rowTop(box.row) - this.scroller.scrollTop;
    context.strokeStyle = colour;
    context.lineWidth = thickness;
    const width = Math.max(row.width[index] - thickness - (row.width[index] > 3 ? 1 : 0), 0.5);
    context.strokeRect(row.x[index] + inset, y + inset, width, ROW - 1 - thickness);
  }

  /** The longest form of a box's label that fits, with the suffix if there is room; cut if even the shortest does not. */
  fit(box, room) {
    const { name, suffix, hasLine } = this.label(box);
    const forms = this.formsOf(name, box.frame >= 0);
    const choices = (suffix ? [suffix, ''] : [''])
      .map(end => ({ end, limit: room - this.measure(end) }))
      .map(({ end, limit }) => ({ end, limit, index: forms.findIndex(form => form.width <= limit) }))
      .filter(({ index }) => index >= 0);
    if (!choices.length) return this.cut(forms.at(-1).text, room - this.measure('…'));
    // a line that is asked for says more than the beginning of the name, a file less
    if (!hasLine) choices.sort((a, b) => a.index - b.index);
    const [{ end, limit, index }] = choices;
    return this.withBeginning(forms, index, limit) + end;
  }

  /** The form at `index`; if it leaves more than half of the room empty, with the beginning of the segment before it. */
  withBeginning(forms, index, room) {
    const { text, width } = forms[index];
    const longer = forms[index - 1]?.text;
    if (width > room / 2 || !longer?.endsWith(text)) return text;
    const [, segment, separator] = /^(.*?)(::|[./]|)$/s.exec(longer.slice(0, -text.length));
    if (!separator) return text;
    const beginning = this.cut(segment, room - width - this.measure('…' + separator));
    return beginning ? beginning + separator + text : text;
  }

  /** The forms of a name, the longest first, with their widths. */
  formsOf(name, isFunction) {
    const key = isFunction + name;
    let forms = this.forms.get(key);
    if (!forms) {
      forms = (isFunction ? shortForms(name) : [name]).map(text => ({ text, width: this.measure(text) }));
      this.forms.set(key, forms);
    }
    return forms;
  }

  /** As many characters as there is room for, with an ellipsis; nothing if that would say nothing. */
  cut(text, room) {
    let used = 0;
    let length = 0;
    for (const character of text) {
      used += this.measure(character);
      if (used > room) break;
      length += character.length;
    }
    return length >= FEWEST_CHARACTERS ? text.slice(0, length) + '…' : '';
  }

  /** Width of a text. Adds up known widths: asking the canvas for each label would cost more than drawing. */
  measure(text) {
    let width = 0;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 126 && code !== 0x2026) return this.context.measureText(text).width;
      width += code === 0x2026 ? this.widths[127] : this.widths[code];
    }
    return width;
  }

  /** Widths of the ASCII characters, and at 127 that of the ellipsis. */
  characterWidths() {
    this.context.font = FONT;
    return Float64Array.from({ length: 128 }, (_, code) =>
      this.context.measureText(code === 127 ? '…' : String.fromCharCode(code)).width);
  }

  makeHatching() {
    const tile = document.createElement('canvas');
    const ratio = devicePixelRatio || 1;
    const size = 6;
    tile.width = tile.height = size * ratio;
    const context = tile.getContext('2d');
    context.scale(ratio, ratio);
    context.strokeStyle = PALETTE[this.theme].hatch;
    context.globalAlpha = 0.5;
    context.lineWidth = 1;
    for (const shift of [-size, 0, size]) {
      context.beginPath();
      context.moveTo(shift - 1, size + 1);
      context.lineTo(shift + size + 1, -1);
      context.stroke();
    }
    const pattern = this.context.createPattern(tile, 'repeat');
    pattern.setTransform(new DOMMatrix().scale(1 / ratio));
    return pattern;
  }

  /** The box at a position within the canvas, or null. */
  boxAt(x, y) {
    return this.rows[Math.floor((y + this.scroller.scrollTop - this.offset) / ROW)]?.at(x) ?? null;
  }

  /** Where a box is drawn within the canvas; null if it is not. */
  placeOf(box) {
    const row = this.rows[box.row];
    const index = row ? row.boxes.indexOf(box) : -1;
    if (index < 0) return null;
    return { x: row.x[index], y: this.rowTop(box.row) - this.scroller.scrollTop, width: row.width[index], height: ROW };
  }

  /** Scrolls so that a box's row can be seen, with some of its surroundings. */
  reveal(box) {
    const y = this.rowTop(box.row);
    const { scroller } = this;
    const margin = Math.min(4 * ROW, this.height / 3);
    if (y < scroller.scrollTop + margin) scroller.scrollTop = y - margin;
    else if (y + ROW > scroller.scrollTop + this.height - margin) scroller.scrollTop = y + ROW + margin - this.height;
  }
}

/** Colours of boxes, by the kind of their function. */
class Colours {
  constructor(profile, theme) {
    this.profile = profile;
    this.theme = theme;
    this.byKind = profile.about.kinds.map(kind => [false, true].map(inlined => shades(theme, paletteName(kind, inlined))));
    this.shadeOf = new Int8Array(profile.functions.count).fill(-1);
  }

  fill(box) {
    if (box.frame < 0) return PALETTE[this.theme][box.isRest ? 'marker' : 'group'][0];
    const { frames, functions } = this.profile;
    const id = frames.function[box.frame];
    const kind = this.byKind[functions.kind[id]];
    if (!kind) return PALETTE[this.theme].other[0];
    return kind[frames.inlined[box.frame]][this.shade(id)];
  }

  /** Shade of a function, by its name, so that it is the same in every profile. */
  shade(id) {
    if (this.shadeOf[id] < 0) {
      const name = this.profile.functions.name[id];
      let hash = 0;
      for (let i = 0; i < Math.min(name.length, 64); i++) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
      this.shadeOf[id] = (hash >>> 4) % 3;
    }
    return this.shadeOf[id];
  }

  isHatched(box) {
    return box.isRest || (box.frame >= 0 && kindName(this.profile, box.frame) === 'marker');
  }
}

function kindName({ about, functions, frames }, frame) {
  return about.kinds[functions.kind[frames.function[frame]]] ?? 'other';
}
