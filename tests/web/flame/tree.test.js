// Flame graphs: the largest first, inverted, and around a function; nothing is lost or counted twice.

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressOf, below, diffTree, inverted, nodeAt, sandwich, sum, treeOf } from "../../../src/stepscope/web/flame/tree.js";

const COLUMNS = ["parent", "name", "own", "total", "calls", "kind", "like"];
const NAMES = ["main", "f", "g", "h"];
// main { f { g, f { h } }, g { h } }
const ROWS = [
  [-1, 0, 1, 100, 1, "thread", null],
  [0, 1, 5, 30, 2, "python", 10],
  [1, 2, 10, 10, 1, "op", 11],
  [1, 1, 5, 15, 1, "python", 12],
  [3, 3, 10, 10, 1, "op", 13],
  [0, 2, 40, 69, 3, "op", 14],
  [5, 3, 29, 29, 1, "op", 15],
];
const tree = (rows = ROWS, left_out = 0) => treeOf({ names: NAMES, columns: COLUMNS, nodes: rows, left_out });
const names = (/** @type {any[]} */ nodes) => nodes.map((node) => node.name);

test("the largest comes first, and the whole is the sum", () => {
  const root = tree();
  assert.equal(root.total, 100);
  assert.deepEqual(names(root.inside[0].inside), ["g", "f"]);
  assert.deepEqual(names(root.inside[0].inside[1].inside), ["f", "g"]);
});

test("inverted, every node that costs something is on top with all of its own cost", () => {
  const root = tree();
  const top = inverted(root);
  assert.equal(top.total, root.total);
  assert.deepEqual(top.inside.map((node) => [node.name, node.total]), [["g", 50], ["h", 39], ["f", 10], ["main", 1]]);
  const h = top.inside[1];
  assert.deepEqual(h.inside.map((node) => [node.name, node.total]), [["g", 29], ["f", 10]]);
  assert.deepEqual(names(h.inside[1].path), ["h", "f"]);
  assert.deepEqual(names(h.inside[1].inside[0].inside), ["main"]);
  for (const node of below(top)) assert.ok(Math.abs(node.total - node.own - sum(node.inside, (each) => each.total)) < 1e-9);
});

test("what the server left out has a box of its own when inverted", () => {
  const root = tree(ROWS.slice(0, -1), 1);
  const top = inverted(root);
  assert.equal(top.total, root.total);
  assert.deepEqual(top.inside.filter((node) => node.kind === "rest").map((node) => node.total), [29]);
});

test("callers and callees of a function sum to the same, a recursion counts once", () => {
  const root = tree();
  const f = sandwich(root, "f");
  assert.equal(f?.callees.total, 30);
  assert.equal(f?.callers.total, 30);
  assert.equal(sum(f?.callers.inside ?? [], (node) => node.total), 30);
  assert.equal((f?.callees.own ?? 0) + sum(f?.callees.inside ?? [], (node) => node.total), 30);
  const h = sandwich(root, "h");
  assert.deepEqual(h?.callers.inside.map((node) => [node.name, node.total]), [["g", 29], ["f", 10]]);
  assert.equal(sandwich(root, "nobody"), null);
});

test("for every function callers and callees agree", () => {
  const root = tree();
  for (const name of NAMES) {
    const both = sandwich(root, name);
    if (!both) continue;
    const callers = name === "main" ? both.callers.total : sum(both.callers.inside, (node) => node.total);
    assert.equal(callers, both.callees.own + sum(both.callees.inside, (node) => node.total), name);
  }
});

test("a node is found by its address", () => {
  const root = tree();
  for (const node of below(root)) assert.equal(nodeAt(root, addressOf(node)), node);
  assert.equal(nodeAt(root, ""), null);
  assert.equal(nodeAt(root, "9.9"), null);
});

test("a diff is as wide as the longer of both, and keeps both times", () => {
  const root = diffTree({ names: ["a", "b", "c"], nodes: [[-1, 0, 0, 0, 30, 50], [0, 1, 10, 50, 10, 50], [0, 2, 20, 0, 20, 0]] });
  assert.equal(root.total, 70);
  assert.deepEqual(root.sides, [30, 50]);
  const top = inverted(root);
  assert.deepEqual(top.inside.map((node) => [node.name, node.sides]), [["b", [10, 50]], ["c", [20, 0]]]);
  assert.deepEqual(sandwich(root, "b")?.callers.inside[0].sides, [10, 50]);
});

test("nothing to draw", () => {
  const root = tree([]);
  assert.equal(root.total, 0);
  assert.equal(inverted(root).total, 0);
});
