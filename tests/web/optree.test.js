import assert from "node:assert/strict";
import { test } from "node:test";

import { openedAtFirst, scopeOf, seen, treeOf } from "../../src/stepscope/web/ui/optree.js";

const ANSWER = {
  columns: ["parent", "name", "is_op", "calls", "self_host_ns", "total_host_ns", "self_device_ns", "total_device_ns", "utilisation"],
  nodes: [
    [-1, "model", false, 0, 0, 30, 0, 90, 0.4],
    [0, "block", false, 0, 0, 25, 0, 80, 0.5],
    [1, "aten::mm", true, 4, 5, 5, 75, 75, 0.5],
    [1, "aten::add", true, 9, 20, 20, 5, 5, null],
    [-1, "(no scope)", false, 0, 0, 50, 0, 10, null],
    [4, "aten::copy_", true, 2, 50, 50, 10, 10, null],
    [0, "aten::sum", true, 1, 5, 5, 10, 10, null],
  ],
  left_out: 0,
};

test("rows become a tree, with depths and paths", () => {
  const [model, none] = treeOf(ANSWER);
  assert.deepEqual(model.inside.map((node) => node.name), ["block", "aten::sum"]);
  assert.equal(model.inside[0].inside[0].path, "model/block/aten::mm");
  assert.equal(model.inside[0].inside[0].depth, 2);
  assert.equal(none.above, null);
});

test("the way to what takes long is open, the longest first", () => {
  const top = treeOf(ANSWER);
  const byDevice = seen(top, openedAtFirst(top, "device"), "device").map((node) => node.name);
  assert.deepEqual(byDevice, ["model", "block", "aten::mm", "aten::add", "aten::sum", "(no scope)"]);
  const byHost = seen(top, openedAtFirst(top, "host"), "host").map((node) => node.name);
  assert.deepEqual(byHost.slice(0, 2), ["(no scope)", "aten::copy_"]);
});

test("calls are found by op and scope", () => {
  const [model, none] = treeOf(ANSWER);
  assert.deepEqual(scopeOf(model.inside[0].inside[0]), "model/block");
  assert.deepEqual(scopeOf(none.inside[0]), null);
});
