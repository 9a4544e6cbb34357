// Rows of slices as pixels: one line of a bitmap for each row, stretched to its height when it is put on the screen.

import { NAME_BITS } from "../net/names.js";

/** @typedef {import("../types").TileRow} TileRow */
/** @typedef {import("../types").Block} Block */

const GAP_FROM = 4; // pixels: narrower slices touch their neighbours

/** Slices wide enough for a name, found while painting; plain arrays that are used again for every frame. */
export class Wide {
  constructor() {
    this.count = 0;
    /** @type {Float64Array} */
    this.x = new Float64Array(4096);
    this.width = new Float64Array(4096);
    this.y = new Float64Array(4096);
    this.label = new Uint32Array(4096);
    this.source = new Uint16Array(4096);
  }

  /**
   * The widest: the width that they exceed, and how many of just that width are among them. Rows that repeat have many alike.
   * @param {number} most
   */
  widest(most) {
    if (this.count <= most) return { above: -1, alike: 0 };
    const sorted = this.width.slice(0, this.count).sort();
    const above = sorted[this.count - most];
    return { above, alike: sorted.lastIndexOf(above) + 1 - (this.count - most) };
  }

  /** @param {number} x @param {number} width @param {number} y @param {number} label @param {number} source */
  add(x, width, y, label, source) {
    if (this.count === this.x.length) return; // A screen has no room for more.
    this.x[this.count] = x;
    this.width[this.count] = width;
    this.y[this.count] = y;
    this.label[this.count] = label;
    this.source[this.count] = source;
    this.count += 1;
  }
}

/**
 * Paints the slices of a row into a line of pixels.
 * @param {Uint32Array} pixels @param {number} offset where the line begins
 * @param {TileRow} row @param {Block} block
 * @param {{ start: number, scale: number, from: number, to: number, width: number, labelFrom: number }} window start ns and ns of a
 *   pixel; only pixels `from` to `to - 1` are painted; slices of `labelFrom` pixels or more go to `wide`
 * @param {Uint32Array} colours by style @param {Uint32Array} dimmed the same for names that are not `lit`
 * @param {Uint8Array | null} lit by number of name
 * @param {Wide} wide @param {number} y @param {number} source
 */
export function paintRow(pixels, offset, row, block, window, colours, dimmed, lit, wide, y, source) {
  const { starts, durs, labels } = row;
  const { from, to, labelFrom } = window;
  const perUnit = block.unit / window.scale;
  const begin = (block.begin - window.start) / window.scale;
  const count = starts.length;
  for (let at = 0; at < count; at += 1) {
    const left = begin + starts[at] * perUnit;
    if (left >= to) continue;
    const right = left + durs[at] * perUnit;
    if (right < from - 1) continue;
    let first = Math.round(left);
    let last = Math.round(right);
    if (last <= first) last = first + 1;
    if (last <= from) continue;
    if (last - first >= GAP_FROM) last -= 1;
    const label = labels[at];
    // Of a slice in several pieces the first one in view gets the name, with the room of all of them.
    if (last - first >= labelFrom && (first >= from || from === 0)) {
      const x = Math.max(first, 0);
      const room = Math.min(last, window.width) - x;
      if (room >= labelFrom && x < to) wide.add(x, room, y, label, source);
    }
    if (first < from) first = from;
    if (last > to) last = to;
    const colour = lit === null || lit[label & NAME_BITS] ? colours[label >>> 24] : dimmed[label >>> 24];
    if (last - first < 8) for (let x = first; x < last; x += 1) pixels[offset + x] = colour;
    else pixels.fill(colour, offset + first, offset + last);
  }
}
