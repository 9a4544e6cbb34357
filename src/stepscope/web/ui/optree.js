// The tree of ops: modules and scopes, their time on host and device, their share, and how well they use the device.
// Rows are made when they are seen; keys are those of any tree: arrows, Home, End, Enter.

import { openEvents } from "./events.js";
import { fill, h } from "./dom.js";
import { count, duration, many, share, UNKNOWN } from "../text/format.js";
import { clipped, shortName } from "../text/names.js";
import { shareBar } from "./tables.js";

const OPENED = 0.15; // nodes with this share of their parent are open at first
const DEEPEST_OPENED = 3;
const MOST_CHILDREN = 200;
const LONGEST_TIP = 2000;

/**
 * @typedef {object} Node
 * @property {string} name
 * @property {boolean} isOp
 * @property {number} calls
 * @property {{ host: number, device: number }} self
 * @property {{ host: number, device: number }} total
 * @property {number | null} utilisation
 * @property {string} path  of the scopes above and itself, as the trace has it
 * @property {number} depth
 * @property {Node | null} above
 * @property {Node[]} inside
 *
 * @typedef {"host" | "device"} Measure
 */

/** The nodes at the top, from rows of the server, parents first. @param {{ columns: string[], nodes: any[][] }} answer @returns {Node[]} */
export function treeOf(answer) {
  const at = Object.fromEntries(answer.columns.map((name, place) => [name, place]));
  /** @type {Node[]} */
  const nodes = [];
  for (const row of answer.nodes) {
    const above = nodes[row[at.parent]] ?? null;
    const name = String(row[at.name]);
    nodes.push({
      name,
      isOp: Boolean(row[at.is_op]),
      calls: row[at.calls],
      self: { host: row[at.self_host_ns], device: row[at.self_device_ns] },
      total: { host: row[at.total_host_ns], device: row[at.total_device_ns] },
      utilisation: row[at.utilisation],
      path: above ? `${above.path}/${name}` : name,
      depth: above ? above.depth + 1 : 0,
      above,
      inside: [],
    });
    above?.inside.push(nodes[nodes.length - 1]);
  }
  return nodes.filter((node) => !node.above);
}

/** The longest first. @param {Node[]} nodes @param {Measure} by */
export function longestFirst(nodes, by) {
  return [...nodes].sort((a, b) => b.total[by] - a.total[by] || b.total.host + b.total.device - a.total.host - a.total.device);
}

/** Those that are open at first: the way to what takes long. @param {Node[]} top @param {Measure} by @returns {Set<Node>} */
export function openedAtFirst(top, by) {
  const opened = new Set();
  /** @param {Node[]} nodes @param {number} whole */
  const look = (nodes, whole) => {
    for (const node of nodes) {
      if (!node.inside.length || node.depth >= DEEPEST_OPENED || node.total[by] < OPENED * whole) continue;
      opened.add(node);
      look(node.inside, node.total[by]);
    }
  };
  look(top, top.reduce((sum, node) => sum + node.total[by], 0));
  return opened;
}

/** Those that are seen, from top to bottom. @param {Node[]} nodes @param {Set<Node>} opened @param {Measure} by @returns {Node[]} */
export function seen(nodes, opened, by) {
  return longestFirst(nodes, by)
    .slice(0, MOST_CHILDREN)
    .flatMap((node) => [node, ...(opened.has(node) ? seen(node.inside, opened, by) : [])]);
}

/** The module that its calls are in. @param {Node} node @returns {string | null} */
export function scopeOf(node) {
  return node.above && node.above.path !== "(no scope)" ? node.above.path : null;
}

/**
 * @param {import("../types").Context} context
 * @param {{ columns: string[], nodes: any[][], left_out: number }} answer
 * @param {{ by: Measure, steps: number | null }} how  `steps`: times are divided by it; null shows totals
 */
export function opTree(context, answer, how) {
  const top = treeOf(answer);
  const whole = { host: sum(top, "host"), device: sum(top, "device") };
  const opened = openedAtFirst(top, how.by);
  const other = how.by === "device" ? "host" : "device";
  const body = h("tbody", {});
  const time = (/** @type {number} */ ns) => (ns ? duration(ns / (how.steps ?? 1)) : UNKNOWN);
  /** @type {Map<Node, HTMLTableRowElement>} */
  let rows = new Map();
  let current = /** @type {Node | null} */ (null);

  /** @param {Node} node */
  const toggle = (node) => {
    if (!node.inside.length) openEvents(context, "op", node.name, { scope: scopeOf(node) });
    else {
      if (!opened.delete(node)) opened.add(node);
      draw(node);
    }
  };
  /** @param {Node | null | undefined} node */
  const focus = (node) => {
    const row = node && rows.get(node);
    if (!row) return;
    if (current) rows.get(current)?.setAttribute("tabindex", "-1");
    current = node;
    row.tabIndex = 0;
    row.focus();
  };
  /** @param {KeyboardEvent} event @param {Node} node */
  const onKey = (event, node) => {
    const all = [...rows.keys()];
    const at = all.indexOf(node);
    const isOpen = opened.has(node);
    if (event.key === "ArrowDown") focus(all[at + 1]);
    else if (event.key === "ArrowUp") focus(all[at - 1]);
    else if (event.key === "Home") focus(all[0]);
    else if (event.key === "End") focus(all[all.length - 1]);
    else if (event.key === "ArrowRight" && node.inside.length) isOpen ? focus(all[at + 1]) : toggle(node);
    else if (event.key === "ArrowLeft") isOpen ? toggle(node) : focus(node.above);
    else if (event.key === "Enter" || event.key === " ") toggle(node);
    else return;
    event.preventDefault();
  };
  /** @param {Node} node */
  const made = (node) => {
    const isFolder = node.inside.length > 0;
    const part = node.total[how.by] / (whole[how.by] || 1);
    const row = h(
      "tr",
      {
        tabindex: -1,
        class: "clickable",
        "aria-level": node.depth + 1,
        "aria-expanded": isFolder ? opened.has(node) : null,
        onclick: () => {
          current = node;
          toggle(node);
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => onKey(event, node),
      },
      h(
        "td",
        { class: "name", "data-tip": clipped(isFolder ? node.name : `${node.name}\nEnter or click: its calls in the trace`, LONGEST_TIP) },
        h("div", { style: { paddingLeft: `${16 * node.depth}px` } }, h("i", { class: "fold" }, isFolder ? (opened.has(node) ? "▾" : "▸") : ""), shortName(node.name)),
      ),
      h("td", { class: "n" }, time(node.total[how.by])),
      node.total[how.by] ? h("td", { class: "n share" }, shareBar(part), share(part)) : h("td", { class: "none n" }, UNKNOWN),
      h("td", { class: "n" }, time(node.total[other])),
      h("td", { class: "n" }, time(node.self[how.by])),
      h("td", { class: "n" }, node.utilisation === null ? UNKNOWN : share(node.utilisation)),
      h("td", { class: "n" }, node.calls ? count(node.calls) : UNKNOWN),
    );
    return row;
  };
  /** @param {Node | null} wanted  which then has the focus */
  const draw = (wanted) => {
    rows = new Map(seen(top, opened, how.by).map((node) => [node, made(node)]));
    fill(body, [...rows.values()]);
    const first = wanted ?? rows.keys().next().value;
    if (wanted) focus(wanted);
    else if (first) rows.get(first)?.setAttribute("tabindex", "0");
  };
  draw(null);
  const per = how.steps === null ? "" : " per step";
  // What it is sorted by comes first: on a phone the columns behind it are out of sight.
  const heads = [`${how.by}${per}`, `share of ${how.by} time`, `${other}${per}`, `self, ${how.by}${per}`, "FLOP utilisation", "calls"];
  return [
    h(
      "div",
      { class: "table" },
      h(
        "table",
        { class: "optree", role: "treegrid", "aria-label": "tree of ops" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "module, scope or op"), heads.map((head) => h("th", { scope: "col", class: "n" }, head)))),
        body,
      ),
    ),
    h(
      "p",
      { class: "note" },
      `FLOP utilisation: what the FLOPs take at the best peak of their number format / the time of the kernels whose FLOPs are known.${answer.left_out ? ` ${many(answer.left_out, "short node")} left out.` : ""}`,
    ),
  ];
}

/** @param {Node[]} nodes @param {Measure} by */
function sum(nodes, by) {
  return nodes.reduce((all, node) => all + node.total[by], 0);
}
