// A counter as pixels: one level for each column, instead of a path of thousands of corners that a browser without a GPU takes milliseconds to fill.

import { BUCKETS } from "../net/decode.js";

/** @typedef {import("../types").CounterTile} CounterTile */
const FILL_FROM = 8; // columns: to fill fewer takes longer than to write each

/** @typedef {{ highs: Float32Array, lasts: Float32Array, count: number }} Curve by column of pixels; nothing is known from `count` on */

/**
 * The greatest value within each column, and the one it ends with.
 * @param {CounterTile[]} tiles in order of time @param {number} start ns @param {number} scale ns of a column @param {number} columns
 * @returns {Curve}
 */
export function curveOf(tiles, start, scale, columns) {
  const highs = new Float32Array(columns);
  const lasts = new Float32Array(columns);
  let level = 0;
  let filled = 0;
  const until = (/** @type {number} */ column) => {
    const end = Math.min(columns, column);
    if (end - filled >= FILL_FROM) {
      highs.fill(level, filled, end);
      lasts.fill(level, filled, end);
      filled = end;
    }
    for (; filled < end; filled += 1) {
      highs[filled] = level;
      lasts[filled] = level;
    }
  };
  for (const tile of tiles) {
    for (let at = 0; at < tile.places.length; at += 1) {
      const place = tile.places[at];
      const column = Math.floor((tile.begin + Math.max(0, place) * tile.step - start) / scale);
      if (column >= columns) break;
      if (column < 0) { // only the level that it leaves is in view
        level = tile.lasts[at];
        continue;
      }
      until(column + 1);
      if (place >= 0 && tile.highs[at] > highs[column]) highs[column] = tile.highs[at];
      level = tile.lasts[at];
      if (level > highs[column]) highs[column] = level;
      lasts[column] = level;
    }
  }
  const end = Math.max(start, ...tiles.map((tile) => tile.begin + BUCKETS * tile.step));
  until(Math.ceil((end - start) / scale));
  return { highs, lasts, count: filled };
}

/**
 * Paints the curve as an area with an edge.
 * @param {Uint32Array} pixels @param {number} offset where its first line of pixels begins @param {number} width of a line
 * @param {number} height in lines @param {Curve} curve @param {number} most the value that reaches the top
 * @param {number} area @param {number} edge colours
 */
export function paintCurve(pixels, offset, width, height, curve, most, area, edge) {
  const { highs, lasts, count } = curve;
  const lowest = height - 1;
  const perValue = lowest / most;
  const line = (/** @type {number} */ value) => lowest - Math.round(Math.min(Math.max(0, value * perValue), lowest));
  let before = line(lasts[0] ?? 0);
  for (let x = 0; x < count;) {
    const high = highs[x];
    const level = lasts[x];
    const last = line(level);
    const top = Math.min(line(high), before, last);
    const below = offset + (Math.max(before, last) + 1) * width;
    let end = x + 1;
    if (before === last) while (end < count && lasts[end] === level && highs[end] === high) end += 1;
    paintColumns(pixels, x, end, offset + top * width, below, offset + height * width, width, area, edge);
    before = last;
    x = end;
  }
}

/**
 * Columns that are alike: an edge, and the area below it. Most curves keep their level for many columns, which are painted line by line.
 * @param {Uint32Array} pixels @param {number} from column @param {number} to column @param {number} top where the line of pixels begins that the edge begins with
 * @param {number} below where that begins which the area begins with @param {number} end where that would begin which comes after the last
 * @param {number} width @param {number} area @param {number} edge
 */
function paintColumns(pixels, from, to, top, below, end, width, area, edge) {
  if (to - from >= FILL_FROM) {
    for (let line = top; line < below; line += width) pixels.fill(edge, line + from, line + to);
    for (let line = below; line < end; line += width) pixels.fill(area, line + from, line + to);
    return;
  }
  for (let x = from; x < to; x += 1) {
    for (let at = top + x; at < below; at += width) pixels[at] = edge;
    for (let at = below + x; at < end; at += width) pixels[at] = area;
  }
}
