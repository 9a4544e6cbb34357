// A flame graph on the page: boxes below the boxes that they lie in, as Plotly draws them.

import { figure, plain } from "./figure.js";
import { label } from "./flame.js";
import { count } from "../text/format.js";
import { clipped } from "../text/names.js";

/** @typedef {import("./flame.js").Node} Node */

const LINE = 28; // pixels of a box's height
const LABEL = 80; // letters; more than a box has room for
const NAME = 200;

/**
 * @param {object} options
 * @param {string} options.title
 * @param {string} options.unit
 * @param {string} options.help
 * @param {number} options.highest  pixels
 * @param {{ nodes: Node[], whole: number }} options.tree
 * @param {number} options.hidden  boxes that are left out
 * @param {[string, string]} options.root  what stands in the box of all, and what it says
 * @param {(node: Node, at: number) => string} options.words  what a box says below its name
 * @param {(node: Node, at: number, colour: (name: string) => string) => string} options.paint
 * @param {string} [options.ink]  the colour of the names, where Plotly's choice for each box is not wanted
 */
export function flameFigure(options) {
  const { nodes, whole } = options.tree;
  const left = options.hidden ? ` ${count(options.hidden)} boxes that are too narrow to see are left out; the table has their ops.` : "";
  return figure({
    title: options.title,
    unit: options.unit,
    help: options.help,
    height: Math.min(options.highest, Math.max(140, 40 + LINE * deepest(nodes))),
    note: `Click a box to zoom in, the bar at the top to zoom out.${left}`,
    draw: (colour) => {
      const font = { size: 11, ...(options.ink ? { color: colour(options.ink) } : {}) };
      return {
        data: [
          {
            type: "icicle",
            branchvalues: "total",
            ids: ["all", ...nodes.map((node) => node.id)],
            labels: [options.root[0], ...nodes.map((node) => plain(clipped(label(node.name), LABEL)))],
            parents: ["", ...nodes.map((node) => node.parent)],
            values: [whole, ...nodes.map((node) => node.total)],
            tiling: { orientation: "v", pad: 1 },
            pathbar: { visible: true, thickness: 22 },
            maxdepth: 60,
            sort: false,
            marker: {
              colors: [colour("card"), ...nodes.map((node, at) => options.paint(node, at, colour))],
              line: { width: 0 },
            },
            text: [
              options.root[1],
              ...nodes.map((node, at) => `${plain(clipped(node.name, NAME))}<br>${options.words(node, at)}`),
            ],
            hoverinfo: "text",
            textinfo: "label",
            textfont: font,
            insidetextfont: font,
          },
        ],
        layout: {
          margin: { l: 0, r: 0, t: 6, b: 6 },
          uniformtext: { minsize: 10, mode: "hide" },
          xaxis: { visible: false },
          yaxis: { visible: false },
        },
      };
    },
  });
}

/** How many boxes lie below one another, with the one of all. @param {Node[]} nodes */
export function deepest(nodes) {
  /** @type {Map<string, number>} */
  const known = new Map([["all", 1]]);
  for (const node of nodes) known.set(node.id, (known.get(node.parent) ?? 1) + 1);
  return Math.max(...known.values());
}
