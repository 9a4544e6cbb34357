// What is behind slices, as pixels of the same lines: a picture that is painted once is cheaper than one that is filled, ruled and painted over.

import { ROW } from "../lines.js";

/** @typedef {{ y: number, count: number }} Run rows below one another: where they begin, and how many there are */

/**
 * The first line: paper, and where the ruler has its marks.
 * @param {Uint32Array} pixels @param {number} width @param {number[]} marks columns @param {number} thick columns of a mark
 * @param {number} paper @param {number} rule colours
 */
export function blankLine(pixels, width, marks, thick, paper, rule) {
  pixels.fill(paper, 0, width);
  for (const mark of marks) if (mark < width) pixels.fill(rule, Math.max(0, mark), Math.max(0, Math.min(width, mark + thick)));
}

/**
 * Lines without slices: all of one colour, or as the first one; with a bar at their begin where they are pinned.
 * @param {Uint32Array} pixels @param {number} width @param {number} from line @param {number} count of lines
 * @param {number | null} colour @param {{ columns: number, colour: number } | null} bar
 */
export function blankRows(pixels, width, from, count, colour, bar) {
  for (let line = from; line < from + count; line += 1) {
    if (colour === null) pixels.copyWithin(line * width, 0, width);
    else pixels.fill(colour, line * width, (line + 1) * width);
    if (bar) pixels.fill(bar.colour, line * width, line * width + bar.columns);
  }
}

/**
 * The heights that no row covers. They reach a pixel into the rows, which are painted later: edges may be between two pixels of the screen.
 * @param {Run[]} runs from top to bottom @param {number} height of the picture
 * @returns {{ top: number, bottom: number }[]}
 */
export function uncovered(runs, height) {
  const found = [];
  let covered = 0;
  for (const run of runs) {
    if (run.y > covered) found.push({ top: Math.max(0, covered - 1), bottom: run.y + 1 });
    covered = Math.max(covered, run.y + run.count * ROW);
  }
  if (covered < height) found.push({ top: Math.max(0, covered - 1), bottom: height });
  return found;
}
