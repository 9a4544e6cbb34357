// The tree of a flame graph: as the server sends it, inverted (who was called below, its callers above), and around one function.
// Boxes of the last two are made when they are looked into, so that a tree of any size costs what is seen of it.

/**
 * @typedef {{ names: string[], columns: string[], nodes: any[][], left_out: number }} Answer
 * @typedef {{ leaf: Node, at: Node }} Chain  a node, and how far out from it one has gone
 */

export const REST = "rest"; // the kind of what is left out
const LEFT_OUT = "(boxes left out)";

export class Node {
  /** @param {string} name @param {string} kind @param {Node | null} above */
  constructor(name, kind, above) {
    this.name = name;
    this.kind = kind;
    this.above = above;
    this.own = 0;
    this.total = 0;
    this.calls = 0;
    /** One of its events. @type {number | null} */
    this.like = null;
    /** Totals in A and B, of a diff. @type {[number, number] | null} */
    this.sides = null;
    /** Nodes of the server's tree whose cost it has. @type {Node[]} */
    this.members = [];
    /** One of that tree which it is drawn as. @type {Node} */
    this.origin = this;
    /** @type {Node[] | null} */
    this.made = null;
    /** @type {() => Node[]} */
    this.make = () => [];
  }

  /** Those inside, the largest first. @returns {Node[]} */
  get inside() {
    this.made ??= this.make().sort((a, b) => b.total - a.total);
    return this.made;
  }

  /** What it is called with, from the outermost in; without the node of all. @returns {Node[]} */
  get path() {
    return this.above ? [...this.above.path, this] : [];
  }
}

/** The node of all, from rows of the server; parents come first. @param {Answer} answer @returns {Node} */
export function treeOf(answer) {
  const at = Object.fromEntries(answer.columns.map((name, place) => [name, place]));
  const root = new Node("all", "all", null);
  root.made = [];
  /** @type {Node[]} */
  const nodes = [];
  for (const row of answer.nodes) {
    const above = nodes[row[at.parent]] ?? root;
    const node = new Node(answer.names[row[at.name]] ?? "", row[at.kind] ?? "", above);
    [node.own, node.total, node.calls, node.like] = [row[at.own], row[at.total], row[at.calls] ?? 0, row[at.like] ?? null];
    node.made = [];
    node.members = [node];
    above.made?.push(node);
    nodes.push(node);
  }
  for (const node of [root, ...nodes]) node.made?.sort((a, b) => b.total - a.total);
  root.total = sum(root.inside, (node) => node.total);
  return root;
}

/** The node of all of a diff: as wide as the longer of both times. @param {{ names: string[], nodes: number[][] }} flame  parent, name, A's and B's own time, A's and B's with all below */
export function diffTree(flame) {
  const root = new Node("all", "all", null);
  root.made = [];
  const nodes = flame.nodes.map(() => /** @type {Node | null} */ (null));
  flame.nodes.forEach(([parent, name, ownA, ownB, a, b], at) => {
    const above = nodes[parent] ?? root;
    const node = new Node(flame.names[name] ?? "", "", above);
    node.own = Math.max(ownA, ownB);
    node.sides = [a, b];
    node.made = [];
    node.members = [node];
    above.made?.push(node);
    nodes[at] = node;
  });
  for (const node of [...nodes].reverse()) if (node) node.total = node.own + sum(node.inside, (each) => each.total);
  for (const node of [root, ...nodes]) {
    node?.made?.sort((a, b) => b.total - a.total);
    if (node && node !== root) node.kind = node.inside.length ? "module" : "op";
  }
  root.total = sum(root.inside, (node) => node.total);
  root.sides = sidesOf(root.inside);
  return root;
}

/** Every node below. @param {Node} root @returns {Node[]} */
export function below(root) {
  const found = [...root.inside];
  for (let at = 0; at < found.length; at += 1) found.push(...found[at].inside);
  return found;
}

/** Callees on top: what costs anything itself, each with its callers inside it. @param {Node} root @returns {Node} */
export function inverted(root) {
  const nodes = below(root);
  const top = new Node("all", "all", null);
  top.sides = root.sides;
  const chains = nodes.filter((node) => node.own > 0).map((node) => ({ leaf: node, at: node }));
  const rest = leftOut(root, nodes);
  top.make = () => [...grouped(chains, top, root, (leaf) => leaf.own, false), ...(rest ? [rest] : [])];
  top.total = sum(top.inside, (node) => node.total);
  if (rest) rest.above = top;
  return top;
}

/** What nodes cost whose boxes the server left out. @param {Node} root @param {Node[]} nodes */
function leftOut(root, nodes) {
  const missing = sum([root, ...nodes], (node) => Math.max(0, node.total - node.own - sum(node.inside, (each) => each.total)));
  if (missing <= root.total * 1e-9) return null;
  const rest = new Node(LEFT_OUT, REST, root);
  rest.own = rest.total = missing;
  return rest;
}

/**
 * A function with its callers and its callees; in a recursion only the outermost call counts, so that nothing is counted twice.
 * @param {Node} root @param {string} name @returns {{ callers: Node, callees: Node } | null}
 */
export function sandwich(root, name) {
  /** @type {Node[]} */
  const found = [];
  const look = [...root.inside];
  for (let at = 0; at < look.length; at += 1) {
    if (look[at].name === name) found.push(look[at]);
    else look.push(...look[at].inside);
  }
  if (!found.length) return null;
  const callers = joined(found, null);
  const chains = found.filter((node) => node.above !== root).map((node) => ({ leaf: node, at: /** @type {Node} */ (node.above) }));
  callers.made = null;
  callers.make = () => grouped(chains, callers, root, (leaf) => leaf.total, true);
  return { callers, callees: joined(found, null) };
}

/** Chains by the name of the node that they have reached. @param {Chain[]} chains @param {Node} above @param {Node} root @param {(leaf: Node) => number} cost @param {boolean} isTotal */
function grouped(chains, above, root, cost, isTotal) {
  /** @type {Map<string, Chain[]>} */
  const groups = new Map();
  for (const chain of chains) {
    const mates = groups.get(chain.at.name);
    if (mates) mates.push(chain);
    else groups.set(chain.at.name, [chain]);
  }
  return [...groups].map(([name, mates]) => {
    const node = new Node(name, mates[0].at.kind, above);
    node.total = sum(mates, ({ leaf }) => cost(leaf));
    node.calls = sum(mates, ({ leaf }) => leaf.calls);
    node.members = mates.map(({ leaf }) => leaf);
    node.like = mates[0].leaf.like;
    node.origin = mates[0].at;
    node.sides = isTotal ? sidesOf(node.members) : ownSides(node.members);
    const outer = mates.filter(({ at }) => at.above && at.above !== root).map(({ leaf, at }) => ({ leaf, at: /** @type {Node} */ (at.above) }));
    node.own = node.total - sum(outer, ({ leaf }) => cost(leaf));
    node.make = () => grouped(outer, node, root, cost, isTotal);
    return node;
  });
}

/** Nodes of one name as one. @param {Node[]} nodes @param {Node | null} above @returns {Node} */
function joined(nodes, above) {
  const node = new Node(nodes[0].name, nodes[0].kind, above);
  node.own = sum(nodes, (each) => each.own);
  node.total = sum(nodes, (each) => each.total);
  node.calls = sum(nodes, (each) => each.calls);
  node.like = nodes[0].like;
  node.origin = nodes[0];
  node.sides = sidesOf(nodes);
  node.members = nodes;
  node.make = () => {
    /** @type {Map<string, Node[]>} */
    const groups = new Map();
    for (const each of nodes.flatMap((one) => one.inside)) groups.set(each.name, [...(groups.get(each.name) ?? []), each]);
    return [...groups.values()].map((mates) => joined(mates, node));
  };
  return node;
}

/** @param {Node[]} nodes @returns {[number, number] | null} */
function sidesOf(nodes) {
  if (!nodes.some((node) => node.sides)) return null;
  return [sum(nodes, (node) => node.sides?.[0] ?? 0), sum(nodes, (node) => node.sides?.[1] ?? 0)];
}

/** What they cost themselves in A and B. @param {Node[]} nodes @returns {[number, number] | null} */
function ownSides(nodes) {
  const all = sidesOf(nodes);
  const inner = sidesOf(nodes.flatMap((node) => node.inside)) ?? [0, 0];
  return all && [Math.max(0, all[0] - inner[0]), Math.max(0, all[1] - inner[1])];
}

/** Where a node is: the place of each node of its path among its siblings. @param {Node} node */
export function addressOf(node) {
  return node.path.map((each) => each.above?.inside.indexOf(each) ?? 0).join(".");
}

/** The node at an address, as far as there is one; null for the node of all. @param {Node} root @param {string} address */
export function nodeAt(root, address) {
  let at = root;
  for (const place of address.split(".").filter((word) => /^\d{1,6}$/.test(word))) {
    const next = at.inside[Number(place)];
    if (!next) break;
    at = next;
  }
  return at === root ? null : at;
}

/** @template T @param {T[]} all @param {(each: T) => number} of */
export function sum(all, of) {
  let found = 0;
  for (const each of all) found += of(each);
  return found;
}
