// A counter as pixels: one level for each column, instead of a path of thousands of corners that a browser without a GPU takes milliseconds to fill.

import { BUCKETS } from "../net/decode.js";

/** @typedef {import("../types").CounterTile} CounterTile */
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
    if (end <= filled) return;
    highs.fill(level, filled, end);
    lasts.fill(level, filled, end);
    filled = end;
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
  const perValue = (height - 1) / most;
  const line = (/** @type {number} */ value) => height - 1 - Math.round(Math.min(Math.max(0, value * perValue), height - 1));
  const tops = new Uint16Array(curve.count);
  const bottoms = new Uint16Array(curve.count);
  let before = line(curve.lasts[0] ?? 0);
  let highest = height;
  for (let x = 0; x < curve.count; x += 1) {
    const last = line(curve.lasts[x]);
    tops[x] = Math.min(line(curve.highs[x]), before, last);
    bottoms[x] = Math.max(before, last);
    if (tops[x] < highest) highest = tops[x];
    before = last;
  }
  // Line by line, as they lie in memory.
  for (let y = highest; y < height; y += 1) {
    const begin = offset + y * width;
    for (let x = 0; x < curve.count; x += 1) if (y >= tops[x]) pixels[begin + x] = y > bottoms[x] ? area : edge;
  }
}
