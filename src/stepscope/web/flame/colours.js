// Colours that mean something, and their legend.

import { colour } from "../shell/theme.js";
import { inkOn, palette } from "../timeline/draw/colours.js";
import { CATEGORIES, categoryOf, moduleOf, OTHER } from "./names.js";

/** @typedef {import("./tree.js").Node} Node */
/**
 * What a box is painted with, made anew for each theme.
 * @typedef {{ of: (node: Node) => [fill: string, ink: string], legend: [title: string, fill: string][] }} Paint
 */

const MOST_MODULES = 11; // as many as one can see at once; the others are "other"
const HUES = [0, 1, 2, 3, 4, 6, 9, 7, 8, 12, 10];

/** How much each class costs itself, the costliest first. @param {Node[]} nodes @param {(node: Node) => string} classOf */
export function classesOf(nodes, classOf) {
  /** @type {Map<string, number>} */
  const costs = new Map();
  for (const node of nodes) costs.set(classOf(node), (costs.get(classOf(node)) ?? 0) + node.own);
  return [...costs].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** @param {Node[]} nodes all that may be drawn @param {string} by category or module @returns {() => Paint} */
export function paintBy(nodes, by) {
  /** @type {Map<Node, string>} */
  const known = new Map();
  const find = by === "module" ? moduleOf : categoryOf;
  const classOf = (/** @type {Node} */ node) => {
    let found = known.get(node);
    if (found === undefined) known.set(node, (found = find(node.origin)));
    return found;
  };
  const classes = classesOf(nodes, classOf);
  return () => {
    const { texts } = palette();
    const other = colour("rule");
    const fills = by === "module" ? hues(classes, texts) : themed(classes, texts);
    const legend = [...fills.values()];
    if (classes.length > legend.length) legend.push([OTHER, other]);
    return { legend, of: (node) => inked(fills.get(classOf(node))?.[1] ?? other) };
  };
}

/** @param {string} fill @returns {[string, string]} */
export function inked(fill) {
  return [fill, inkOn(fill)];
}

/** @param {string[]} classes @param {string[]} texts @returns {Map<string, [string, string]>} */
function hues(classes, texts) {
  const named = classes.filter((name) => name !== OTHER).slice(0, MOST_MODULES);
  return new Map(named.map((name, at) => [name, [name, texts[HUES[at]]]]));
}

/** @param {string[]} classes @param {string[]} texts @returns {Map<string, [string, string]>} */
function themed(classes, texts) {
  const present = Object.entries(CATEGORIES).filter(([name]) => classes.includes(name));
  return new Map(present.map(([name, [title, fill]]) => [name, [title, typeof fill === "number" ? texts[fill] : colour(fill)]]));
}
