// Where boxes are: places from 0 to 1 across the picture, rows from the top. And which box is beside another.

import { Node } from "./tree.js";

/**
 * @typedef {{ node: Node, row: number, x0: number, x1: number, isAround?: boolean, more?: number }} Box  `more`: how many nodes too narrow to draw it stands for
 * @typedef {{ boxes: Box[], rows: number }} Picture
 */

const LEAST = 0.6; // pixels; narrower boxes are not drawn

/**
 * Left-heavy: the largest first. What is zoomed into takes the whole width, below those around it.
 * @param {Node} root @param {Node | null} zoom @param {number} pixels @returns {Picture}
 */
export function layOut(root, zoom, pixels) {
  const boxes = half(root, zoom, pixels, 1);
  return { boxes, rows: 1 + Math.max(0, ...boxes.map((box) => box.row)) };
}

/**
 * A function between its callers, above it, and its callees.
 * @param {{ callers: Node, callees: Node }} both @param {Node | null} zoom @param {number} pixels @returns {Picture}
 */
export function layOutSandwich(both, zoom, pixels) {
  const base = zoom ? zoom.path[0]?.above ?? zoom : null;
  const up = half(both.callers, base === both.callers ? zoom : null, pixels, -1).filter((box) => box.row < 0);
  const down = half(both.callees, base === both.callees ? zoom : null, pixels, 1);
  const above = -Math.min(0, ...up.map((box) => box.row));
  const boxes = [...up, ...down].map((box) => ({ ...box, row: box.row + above }));
  return { boxes, rows: 1 + Math.max(0, ...boxes.map((box) => box.row)) };
}

/** @param {Node} root @param {Node | null} zoom @param {number} pixels @param {1 | -1} by  rows go down or up @returns {Box[]} */
function half(root, zoom, pixels, by) {
  const way = zoom ? [root, ...zoom.path] : [root];
  const top = way[way.length - 1];
  /** @type {Box[]} */
  const boxes = way.map((node, at) => ({ node, row: at * by, x0: 0, x1: 1, isAround: node !== top }));
  const scale = top.total > 0 ? 1 / top.total : 0;
  const least = LEAST / Math.max(1, pixels);
  /** @type {{ node: Node, x0: number, depth: number }[]} */
  const open = [{ node: top, x0: 0, depth: way.length }];
  for (let at = open.pop(); at; at = open.pop()) {
    let { x0 } = at;
    const { inside } = at.node;
    for (let place = 0; place < inside.length; place += 1) {
      const width = inside[place].total * scale;
      if (width < least) {
        const left = inside.slice(place).reduce((all, node) => all + node.total, 0) * scale;
        if (left >= least) boxes.push({ node: inside[place], row: at.depth * by, x0, x1: x0 + left, more: inside.length - place });
        break;
      }
      boxes.push({ node: inside[place], row: at.depth * by, x0, x1: x0 + width });
      open.push({ node: inside[place], x0, depth: at.depth + 1 });
      x0 += width;
    }
  }
  return boxes;
}

/**
 * In time order, as the server has placed the boxes; each node is one call, or several that are too narrow to draw.
 * @param {{ names: string[], columns: string[], boxes: any[][], shown: [number, number] }} answer @returns {Picture}
 */
export function layOutOrder(answer) {
  const at = Object.fromEntries(answer.columns.map((name, place) => [name, place]));
  const [low, high] = answer.shown;
  const long = Math.max(1, high - low);
  const boxes = answer.boxes.map((row) => {
    const node = new Node(answer.names[row[at.name]] ?? "", row[at.kind] ?? "", null);
    node.total = node.own = row[at.x1] - row[at.x0];
    node.calls = row[at.calls];
    node.like = row[at.event];
    return { node, row: row[at.row], x0: (row[at.x0] - low) / long, x1: (row[at.x1] - low) / long };
  });
  return { boxes, rows: 1 + boxes.reduce((most, box) => Math.max(most, box.row), 0) };
}

/** Boxes by row, from left to right. @param {Box[]} boxes @returns {Box[][]} */
export function byRow(boxes) {
  /** @type {Box[][]} */
  const rows = [];
  for (const box of boxes) (rows[box.row] ??= []).push(box);
  for (const row of rows) row?.sort((a, b) => a.x0 - b.x0);
  return rows;
}

/** The box at a place. @param {Box[][]} rows @param {number} row @param {number} x */
export function boxAt(rows, row, x) {
  return rows[row]?.find((box) => box.x0 <= x && x < box.x1) ?? null;
}

/**
 * The box that an arrow key leads to, null where there is none: up and down to the next row that has something there, sideways in the row.
 * @param {Box[][]} rows @param {Box} at @param {string} key @returns {Box | null}
 */
export function beside(rows, at, key) {
  const row = rows[at.row] ?? [];
  if (key === "Home") return rows.find((each) => each?.length)?.[0] ?? null;
  if (key === "End") return row[row.length - 1] ?? null;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const place = row.findIndex((box) => box.node === at.node && box.x0 === at.x0);
    return row[place + (key === "ArrowRight" ? 1 : -1)] ?? null;
  }
  const by = key === "ArrowDown" ? 1 : -1;
  for (let next = at.row + by; next >= 0 && next < rows.length; next += by) {
    const found = (rows[next] ?? []).filter((box) => box.x0 < at.x1 && box.x1 > at.x0);
    if (found.length) return found.reduce((best, box) => (shared(box, at) > shared(best, at) ? box : best));
  }
  return null;
}

/** @param {Box} box @param {Box} at */
function shared(box, at) {
  return Math.min(box.x1, at.x1) - Math.max(box.x0, at.x0);
}
