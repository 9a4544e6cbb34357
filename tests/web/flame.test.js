import assert from "node:assert/strict";
import test from "node:test";

import { hash, label, visible } from "../../src/stepscope/web/ui/flame.js";

test("each box is at least as long as those below it, and belongs to one that is there", () => {
  const { nodes, whole, hidden } = visible({
    names: ["a", "b", "c", "tiny"],
    nodes: [
      [-1, 0, 10, 50, 1],
      [0, 1, 60, 60, 2],
      [-1, 2, 1000, 1000, 1],
      [2, 3, 0.5, 0.5, 1],
    ],
  });
  assert.equal(whole, 1060);
  assert.equal(nodes.find((node) => node.name === "a").total, 60);
  assert.equal(hidden, 1);
  const ids = new Set(["all", ...nodes.map((node) => node.id)]);
  assert.ok(nodes.every((node) => ids.has(node.parent)));
});

test("nothing to draw", () => {
  assert.deepEqual(visible({ names: [], nodes: [] }), { nodes: [], whole: 0, hidden: 0 });
});

test("a name always has the same colour", () => {
  assert.equal(hash("aten::mm"), hash("aten::mm"));
  assert.ok(hash("x".repeat(1000)) >= 0);
});

test("labels are what tells boxes apart", () => {
  assert.equal(label("torch/nn/modules/module.py(1783): _call_impl"), "_call_impl");
  assert.equal(label("nn.Module: Block_0"), "Block_0");
  assert.equal(label("train.py(12): <module>"), "<module>");
  assert.equal(label("aten::mm"), "aten::mm");
});
