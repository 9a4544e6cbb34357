// The differential flame graph: ops below their scopes, as wide as the longer of both times; red is more in B, blue is less.

import { visible } from "../../ui/flame.js";
import { duration, signed } from "../../text/format.js";
import { flameFigure } from "../../ui/icicle.js";

/** Parent, name, A's and B's own time, A's and B's with all below. @typedef {[number, number, number, number, number, number]} Node */
/** @typedef {{ measure: string, names: string[], nodes: Node[], left_out: number }} Flame */

const FULL = 0.5; // a change by this share has the full colour

/** A colour between two, as `#rrggbb`. @param {string} from @param {string} to @param {number} way 0 to 1 */
export function mixed(from, to, way) {
  const parts = [from, to].map((colour) => [1, 3, 5].map((at) => Number.parseInt(colour.trim().slice(at, at + 2), 16)));
  return `#${parts[0].map((low, at) => Math.round(low + (parts[1][at] - low) * way).toString(16).padStart(2, "0")).join("")}`;
}

/** From −1, all of it gone, to 1, all of it new. @param {number} a @param {number} b */
export function change(a, b) {
  const larger = Math.max(a, b);
  return larger ? (b - a) / larger : 0;
}

/** @param {Flame} flame */
export function diffFlame(flame) {
  const tree = {
    names: flame.names,
    nodes: flame.nodes.map(
      ([parent, name, a, b]) => /** @type {[number, number, number, number, number]} */ ([parent, name, Math.max(a, b), 0, 0]),
    ),
  };
  const { nodes, whole, hidden } = visible(tree);
  if (!nodes.length) return null;
  const both = nodes.map((node) => flame.nodes[Number(node.id)]);
  const tops = flame.nodes.filter(([parent]) => parent < 0);
  const [a, b] = [4, 5].map((at) => tops.reduce((sum, node) => sum + node[at], 0));
  const words = (/** @type {number} */ ours, /** @type {number} */ theirs) =>
    `A ${duration(ours)}, B ${duration(theirs)} a step (${signed(theirs - ours, duration)})`;
  return flameFigure({
    title: `Where ${flame.measure} time grew and shrank`,
    unit: "width is the longer of both; red is more in B, blue is less",
    help: "diff",
    highest: 700,
    tree: { nodes, whole },
    hidden: hidden + flame.left_out,
    root: ["all ops", words(a, b)],
    words: (_, at) => words(both[at][4], both[at][5]),
    paint: (_, at, colour) => {
      const way = change(both[at][4], both[at][5]);
      return mixed(colour("rule"), colour(way > 0 ? "p-dispatch" : "accent"), Math.min(1, Math.abs(way) / FULL));
    },
    ink: "ink",
  });
}
