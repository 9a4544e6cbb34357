// Which blocks of rows show a stretch of time: the right ones, or the best there are while those are on their way.

import { tileSpan, tilesOf } from "./decode.js";

/** @typedef {import("../types").Source} Source */
/** @typedef {import("../types").Block} Block */
/** @typedef {import("./tiles.js").Wish} Wish */

const COARSER = 20; // levels to look up for something to show meanwhile
const FINER = 2;

/**
 * The blocks to paint, with the times that each is painted for. What is missing is added to `wishes`.
 * @param {import("./tiles.js").Tiles} tiles @param {Source} source @param {number} block
 * @param {number} start @param {number} end @param {number} level @param {Wish[]} wishes
 * @returns {{ block: Block, start: number, end: number }[]}
 */
export function blocksFor(tiles, source, block, start, end, level, wishes) {
  const { first, last } = tilesOf(start - source.shift, end - source.shift, level);
  const span = tileSpan(level);
  const found = [];
  for (let index = first; index <= last; index += 1) {
    const exact = tiles.get(source, level, index, block);
    const from = index * span + source.shift;
    if (exact) {
      found.push({ block: exact, start: from, end: from + span });
      continue;
    }
    wishes.push({ source, level, index, block });
    const coarser = parent(tiles, source, level, index, block);
    if (coarser) found.push({ block: coarser, start: from, end: from + span });
    else found.push(...children(tiles, source, level, index, block, FINER));
  }
  return found;
}

/** @param {import("./tiles.js").Tiles} tiles @param {Source} source @param {number} level @param {number} index @param {number} block */
function parent(tiles, source, level, index, block) {
  for (let up = 1; up <= COARSER; up += 1) {
    const found = tiles.get(source, level + up, Math.floor(index / 2 ** up), block);
    if (found) return found;
  }
  return null;
}

/**
 * @param {import("./tiles.js").Tiles} tiles @param {Source} source @param {number} level @param {number} index
 * @param {number} block @param {number} depth
 * @returns {{ block: Block, start: number, end: number }[]}
 */
function children(tiles, source, level, index, block, depth) {
  if (depth === 0 || level === 0) return [];
  return [2 * index, 2 * index + 1].flatMap((half) => {
    const found = tiles.get(source, level - 1, half, block);
    const span = tileSpan(level - 1);
    const from = half * span + source.shift;
    if (found) return [{ block: found, start: from, end: from + span }];
    return children(tiles, source, level - 1, half, block, depth - 1);
  });
}

/**
 * What is likely asked for next: beside what is shown, then a little further out and further in.
 * @param {Source} source @param {number[]} blocks @param {number} start @param {number} end @param {number} level
 * @returns {Wish[]}
 */
export function likelyNext(source, blocks, start, end, level) {
  const half = (end - start) / 2;
  const quarter = half / 2;
  /** @type {[number, number, number][]} */
  const views = [[level, start - half, end + half], [level + 1, start - half, end + half]];
  if (level > 0) views.push([level - 1, start + quarter, end - quarter]);
  return views.flatMap(([at, from, to]) => {
    const { first, last } = tilesOf(from - source.shift, to - source.shift, at);
    const indices = Array.from({ length: Math.min(last - first + 1, 8) }, (_, each) => first + each);
    return indices.flatMap((index) => blocks.map((block) => ({ source, level: at, index, block })));
  });
}
