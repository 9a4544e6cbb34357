// Flame graphs: the server's tree made into what Plotly draws.

import { shortName } from "../text/names.js";

/** @typedef {{ names: string[], nodes: [number, number, number, number, number][], left_out?: number }} Tree */
/** @typedef {{ id: string, parent: string, name: string, self: number, total: number, calls: number }} Node */

const SMALLEST = 0.0015; // of the whole; narrower than a line
const MOST = 2500;

/**
 * The nodes that can be seen, below one root; each is at least as long as all below it.
 * @param {Tree} tree
 * @returns {{ nodes: Node[], whole: number, hidden: number }}
 */
export function visible(tree) {
  const totals = tree.nodes.map(([, , self, total]) => Math.max(self, total));
  const below = new Float64Array(tree.nodes.length);
  // Parents come before their children, so that from the back each node knows what is below it.
  for (let at = tree.nodes.length - 1; at >= 0; at -= 1) {
    totals[at] = Math.max(totals[at], below[at]);
    const parent = tree.nodes[at][0];
    if (parent >= 0) below[parent] += totals[at];
  }
  const whole = tree.nodes.reduce((sum, [parent], at) => (parent < 0 ? sum + totals[at] : sum), 0);
  const least = Math.max(whole * SMALLEST, [...totals].sort((a, b) => b - a)[MOST] ?? 0);
  const isKept = tree.nodes.map(() => false);
  /** @type {Node[]} */
  const nodes = [];
  tree.nodes.forEach(([parent, name, self, , calls], at) => {
    isKept[at] = totals[at] > 0 && totals[at] >= least && (parent < 0 || isKept[parent]);
    if (isKept[at])
      nodes.push({
        id: String(at),
        parent: parent < 0 ? "all" : String(parent),
        name: tree.names[name],
        self,
        total: totals[at],
        calls,
      });
  });
  return { nodes, whole, hidden: tree.nodes.length - nodes.length };
}

/** What stands in a box, which is often narrow: the function without its file, the module without its kind. @param {string} name */
export function label(name) {
  return shortName(name)
    .replace(/(?<=\S) \(\S*\.py:\d+\)$/, "")
    .replace(/^(nn\.Module|autograd::engine::evaluate_function): (?=\S)/, "");
}

/** A number for a name, always the same. @param {string} name */
export function hash(name) {
  let value = 7;
  for (let at = 0; at < name.length; at += 1) value = (Math.imul(value, 31) + name.charCodeAt(at)) | 0;
  return Math.abs(value);
}
