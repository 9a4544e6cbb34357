// From figures to events: handles in words, rows of SQL that have an event, and places in the program.

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventOf } from "../../src/stepscope/web/pages/sql.js";
import { innermostPlace, placeOf } from "../../src/stepscope/web/text/stack.js";
import { factsOf, homeOf, titleOf } from "../../src/stepscope/web/timeline/act/handles.js";
import { rowLinks, stepLink } from "../../src/stepscope/web/ui/events.js";

const context = (/** @type {number} */ ranks = 1) => /** @type {any} */ ({
  rank: null,
  about: { ranks },
  link: (/** @type {string} */ page, /** @type {Record<string, any>} */ changes) => `${page} ${JSON.stringify(changes)}`,
});

test("a handle has a title and a page", () => {
  assert.equal(titleOf("account", "input", { name: "make_batch" }), "input: make_batch");
  assert.equal(titleOf("step", "7", { part: "sync" }), "step 7, synchronisation");
  assert.equal(titleOf("kernel", "gemm", {}), "kernel gemm");
  assert.equal(titleOf("idle", "0", {}), "idle time of device 0");
  assert.equal(homeOf("kernel:a:b"), "kernels");
  assert.equal(homeOf("nothing"), "overview");
  assert.deepEqual([factsOf(""), factsOf("{"), factsOf('{"op":null}')], [{}, {}, { op: null }]);
});

test("rows of SQL lead to events where they have one", () => {
  const answer = (/** @type {string[]} */ ...names) => /** @type {any} */ ({ columns: names.map((name) => ({ name })) });
  assert.match(eventOf(context(), answer("name", "id"), "SELECT name, id FROM events")?.({ 0: "a", 1: 5 }) ?? "", /event:5/);
  assert.match(eventOf(context(), answer("event"), "SELECT event FROM kernels")?.({ 0: 7 }) ?? "", /event:7/);
  assert.equal(eventOf(context(), answer("event"), "SELECT event FROM kernels")?.({ 0: null }), null);
  assert.equal(eventOf(context(), answer("id"), "SELECT * FROM tracks"), undefined);
  assert.equal(eventOf(context(2), answer("id"), "SELECT id FROM events"), undefined);
  assert.match(eventOf(context(2), answer("id", "rank"), "SELECT id, rank FROM events")?.({ 0: 3, 1: 1 }) ?? "", /event:3.*"rank":1/);
});

test("rows have the facts that identify them", () => {
  const to = rowLinks(context(), "copy", "direction");
  assert.equal(to({ direction: "HtoD", source: "pinned", target: null, calls: 3 }), 'trace {"events":"copy:HtoD","facts":"{\\"source\\":\\"pinned\\",\\"target\\":null}","rank":null}');
  assert.equal(stepLink(context(), { rank: 1, step: 7, device: null }), 'trace {"events":"step:7","facts":null,"rank":1}');
});

test("the place is that of the user's own innermost frame", () => {
  assert.deepEqual(placeOf("train.py(12): step"), { file: "train.py", line: 12, function: "step" });
  assert.deepEqual(placeOf("$train.py:12 step"), { file: "train.py", line: 12, function: "step" });
  assert.equal(placeOf("aten::mm"), null);
  assert.equal(innermostPlace(["train.py(1): main", "model.py(5): forward", "torch/nn/linear.py(9): forward", "aten::mm"])?.file, "model.py");
  assert.equal(innermostPlace(["torch/nn/linear.py(9): forward"])?.line, 9);
  assert.equal(innermostPlace(["aten::mm"]), null);
});
