// Where boxes lie, which one an arrow key leads to, what is hit, what stands in a box, and which events it leads to.

import assert from "node:assert/strict";
import { test } from "node:test";

import { classesOf } from "../../../src/stepscope/web/flame/colours.js";
import { handleOf } from "../../../src/stepscope/web/flame/handles.js";
import { beside, boxAt, byRow, layOut, layOutOrder, layOutSandwich } from "../../../src/stepscope/web/flame/layout.js";
import { categoryOf, fitted, label, moduleOf } from "../../../src/stepscope/web/flame/names.js";
import { hitsAcross, hitsOf, wanted } from "../../../src/stepscope/web/flame/search.js";
import { inverted, sandwich, treeOf } from "../../../src/stepscope/web/flame/tree.js";

const COLUMNS = ["parent", "name", "own", "total", "calls", "kind", "like"];
const root = () =>
  treeOf({
    names: ["main", "f", "g", "tiny", "smaller"],
    columns: COLUMNS,
    nodes: [
      [-1, 0, 0, 1000, 1, "thread", null],
      [0, 1, 100, 300, 2, "python", 10],
      [0, 2, 699, 699, 1, "op", 11],
      [1, 2, 200, 200, 1, "op", 12],
      [0, 3, 0.5, 0.5, 1, "op", 13],
      [0, 4, 0.5, 0.5, 1, "op", 14],
    ],
    left_out: 0,
  });
const shown = (/** @type {any} */ box) => [box.node.name, box.row, Number(box.x0.toFixed(3)), Number(box.x1.toFixed(3))];

test("left-heavy: the largest on the left, children inside their parent, the narrowest as one box", () => {
  const { boxes, rows } = layOut(root(), null, 600);
  assert.deepEqual(boxes.filter((box) => !box.more).map(shown), [
    ["all", 0, 0, 1],
    ["main", 1, 0, 1],
    ["g", 2, 0, 0.699],
    ["f", 2, 0.699, 0.999],
    ["g", 3, 0.699, 0.899],
  ]);
  assert.deepEqual(boxes.filter((box) => box.more).map((box) => box.more), [2]);
  assert.equal(rows, 4);
});

test("zoomed in, a node has the whole width below those around it", () => {
  const tree = root();
  const f = tree.inside[0].inside[1];
  const { boxes } = layOut(tree, f, 600);
  assert.deepEqual(boxes.map((box) => [...shown(box), Boolean(box.isAround)]), [
    ["all", 0, 0, 1, true],
    ["main", 1, 0, 1, true],
    ["f", 2, 0, 1, false],
    ["g", 3, 0, 0.667, false],
  ]);
});

test("a sandwich has its callers above and its callees below", () => {
  const both = sandwich(root(), "f");
  assert.ok(both);
  assert.deepEqual(layOutSandwich(both, null, 600).boxes.map(shown), [["main", 0, 0, 1], ["f", 1, 0, 1], ["g", 2, 0, 0.667]]);
});

test("in time order boxes lie where the server says", () => {
  const { boxes, rows } = layOutOrder({
    names: ["thread", "a"],
    columns: ["row", "name", "x0", "x1", "calls", "event", "kind"],
    boxes: [[0, 0, 100, 300, 1, null, "thread"], [1, 1, 150, 200, 3, 7, "op"]],
    shown: [100, 300],
  });
  assert.deepEqual(boxes.map(shown), [["thread", 0, 0, 1], ["a", 1, 0.25, 0.5]]);
  assert.deepEqual([rows, boxes[1].node.calls, boxes[1].node.like], [2, 3, 7]);
});

test("arrow keys go to the box beside, above and below", () => {
  const rows = byRow(layOut(root(), null, 600).boxes.filter((box) => !box.more));
  const start = rows[0][0];
  const go = (/** @type {string[]} */ ...keys) => keys.reduce((at, key) => beside(rows, at, key) ?? at, start);
  assert.equal(go("ArrowDown", "ArrowDown").node.name, "g");
  assert.equal(go("ArrowDown", "ArrowDown", "ArrowRight").node.name, "f");
  assert.deepEqual(shown(go("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown")), ["g", 3, 0.699, 0.899]);
  assert.equal(go("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowUp").node.name, "f");
  assert.equal(go("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft").node.name, "g");
  assert.equal(go("ArrowDown", "ArrowDown", "Home").node.name, "all");
  assert.equal(beside(rows, start, "ArrowUp"), null);
  assert.equal(boxAt(rows, 2, 0.8)?.node.name, "f");
  assert.equal(boxAt(rows, 9, 0.8), null);
});

test("a search is a regular expression; hits inside hits count once", () => {
  const all = wanted("^(f|g)$");
  assert.ok(all);
  assert.deepEqual(hitsOf(root(), all), { share: 0.999, names: 2, boxes: 3 });
  assert.equal(wanted(""), null);
  assert.equal(wanted("a(")?.isPattern, false);
  assert.ok(wanted("a(")?.test("x a( y"));
  assert.ok(wanted("/gemm|CONV/")?.test("my_conv"));
  const boxes = layOut(root(), null, 600).boxes;
  assert.ok(Math.abs(hitsAcross(boxes, /** @type {any} */ (wanted("g"))).share - 0.899) < 1e-9);
});

test("labels say what a call is, never its path", () => {
  assert.equal(label("torch/nn/modules/module.py(1783): _call_impl"), "_call_impl");
  assert.equal(label("/home/me/train.py(12): <module>"), "train.py <module>");
  assert.equal(label("nn.Module: Block_0"), "Block_0");
  assert.equal(label("aten::mm"), "aten::mm");
  assert.equal(label("$train.py:12 step"), "step");
});

test("labels are cut in the middle to the room there is", () => {
  const width = (/** @type {string} */ text) => 6 * text.length;
  assert.equal(fitted("aten::copy_", 100, width), "aten::copy_");
  assert.equal(fitted("aten::copy_", 40, width), "copy_");
  assert.equal(fitted("_engine_run_backward", 60, width), "_engi…ward");
  assert.equal(fitted("_engine_run_backward", 10, width), "");
});

test("colours mean a category or a module", () => {
  const of = (/** @type {string} */ name, /** @type {string} */ kind, above = null) => /** @type {any} */ ({ name, kind, above, own: 1 });
  assert.equal(categoryOf(of("aten::mm", "op")), "op");
  assert.equal(categoryOf(of("x", "counter")), "other");
  assert.equal(moduleOf(of("aten::mm", "op")), "aten");
  assert.equal(moduleOf(of("aten::mm", "op", /** @type {any} */ (of("Linear_3", "module")))), "Linear");
  assert.equal(moduleOf(of("nn.Module: Block_12", "python")), "Block");
  assert.equal(moduleOf(of("torch/nn/functional.py(3): linear", "python")), "torch");
  assert.equal(moduleOf(of("/usr/lib/python3/site-packages/tqdm/std.py(3): __iter__", "python")), "tqdm");
  assert.equal(moduleOf(of("train.py(3): main", "python")), "own code");
  assert.equal(moduleOf(of("cudaLaunchKernel", "runtime")), "CUDA");
  assert.deepEqual(classesOf([of("a::b", "op"), of("c::d", "op"), of("c::e", "op")], moduleOf), ["c", "a"]);
});

test("a box leads to its events", () => {
  const tree = root();
  const f = tree.inside[0].inside[1];
  assert.deepEqual(handleOf(f, "down", true), { kind: "frame", name: "f", facts: { like: 10 } });
  assert.equal(handleOf(tree.inside[0], "down", true), null);
  assert.deepEqual(handleOf(f.inside[0], "down", false), { kind: "scope", name: "main/f/g", facts: { anchored: "top" } });
  const g = inverted(tree).inside[0];
  const under = g.inside.find((node) => node.name === "f");
  assert.ok(under);
  assert.deepEqual(handleOf(under, "inverted", true), { kind: "frame", name: "g", facts: { like: 12, levels: 1, own: true } });
  assert.deepEqual(handleOf(under, "inverted", false), { kind: "scope", name: "f/g", facts: { anchored: "end" } });
  const thread = under.inside[0];
  assert.deepEqual(handleOf(thread, "inverted", true)?.facts, { like: 12, own: true });
  const both = sandwich(tree, "f");
  assert.ok(both);
  assert.deepEqual(handleOf(both.callees, "callees", true)?.facts, { like: 10, levels: 0, base: 0 });
  assert.deepEqual(handleOf(both.callees.inside[0], "callees", true), { kind: "frame", name: "g", facts: { like: 12, levels: 1, base: 1 } });
  assert.deepEqual(handleOf(both.callers.inside[0], "callers", false), { kind: "scope", name: "main/f", facts: { anchored: "" } });
});
