// What lies under the pointer, and where a slice lies on the screen.

import { blocksFor } from "../net/blocks.js";
import { BLOCK_ROWS } from "../net/decode.js";
import { GROUP_HEIGHT, lineAt, ROW, stuckHeight, stuckLines } from "../lines.js";

/** @typedef {import("../types").Line} Line */
/** @typedef {import("../types").Hit} Hit */

/** Where the rows of a line begin, from the top of the line. @param {Line} line */
export function inset(line) {
  return line.kind === "group" ? (GROUP_HEIGHT - ROW) / 2 : 2;
}

/** The line and the row of its source at a height of the whole picture. @param {Line[]} lines @param {number} y */
export function rowAt(lines, y) {
  const line = lines[lineAt(lines, y)];
  if (!line || y < line.y) return null;
  const at = Math.floor((y - line.y - inset(line)) / ROW);
  return { line, row: line.source && line.kind !== "counter" && at >= 0 && at < line.rows ? line.row + at : null };
}

/**
 * The slice at a pixel: of several the last one that is painted there, within two pixels where they are narrow.
 * @param {import("../draw/painter.js").Scene} scene @param {number} x @param {number} y from the top of the view @param {number} ratio
 * @returns {Hit | null}
 */
export function hitAt(scene, x, y, ratio) {
  if (y < stuckHeight(stuckLines(scene.lines, scene.scroll))) return null; // covered by a heading
  const place = rowAt(scene.lines, y + scene.scroll);
  const source = place?.line.source;
  if (!place || !source || place.row === null) return null;
  const { line, row } = place;
  const { viewport } = scene;
  const level = viewport.level(ratio);
  const time = viewport.time(x);
  const near = 2 * viewport.scale;
  let best = null;
  let distance = near;
  for (const piece of blocksFor(scene.tiles, source, Math.floor(row / BLOCK_ROWS), time - near, time + near, level, [])) {
    const items = piece.block.rows[row % BLOCK_ROWS];
    if (!items) continue;
    const { begin, unit } = piece.block;
    for (let at = 0; at < items.starts.length; at += 1) {
      const start = begin + items.starts[at] * unit;
      const dur = items.durs[at] * unit;
      const away = time < start ? start - time : Math.max(0, time - start - Math.max(dur, viewport.scale));
      if (away > distance || (away === distance && away > 0)) continue;
      distance = away;
      best = { source, row, id: items.ids[at], start, dur, label: items.labels[at], count: items.counts[at], line };
    }
  }
  return best;
}

/**
 * The height at which a row of a source is shown; of a folded track its one row, of a folded device the row of all its streams.
 * @param {Line[]} lines @param {string} source @param {number} row @param {{ rank: number, track: number | null } | null} [of] the track that the row belongs to
 */
export function heightOf(lines, source, row, of = null) {
  for (const line of lines) {
    if (line.source?.id !== source || line.kind === "counter") continue;
    if (row >= line.row && row < line.row + line.allRows && line.rows > 0) {
      const at = Math.min(row - line.row, line.rows - 1);
      return { line, y: line.y + inset(line) + at * ROW, isExact: row - line.row < line.rows };
    }
  }
  const folded = of && groupOf(lines, of.rank, of.track);
  return folded && folded.line.source?.id !== source ? folded : null; // a process shows its first thread alone
}

/** Where the folded group of a track is. @param {Line[]} lines @param {number} rank @param {number | null} track */
export function groupOf(lines, rank, track) {
  if (track === null) return null;
  const line = lines.find((each) => each.kind === "group" && each.folded && each.source?.rank === rank && each.inside.includes(track));
  return line ? { line, y: line.y + inset(line), isExact: false } : null;
}

/** The tracks between two heights, all those of a folded group too. @param {Line[]} lines @param {number} low @param {number} high */
export function tracksBetween(lines, low, high) {
  /** @type {{ rank: number, track: number }[]} */
  const found = [];
  for (const line of lines) {
    if (!line.source || line.y >= high || line.y + line.height <= low) continue;
    const { rank } = line.source;
    if (line.kind === "group" && line.folded) found.push(...line.inside.map((track) => ({ rank, track })));
    else if (line.kind === "track" && line.track !== null) found.push({ rank, track: line.track });
  }
  return found;
}
