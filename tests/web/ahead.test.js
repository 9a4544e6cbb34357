import assert from "node:assert/strict";
import test from "node:test";

import { asksOf, takeAhead } from "../../src/stepscope/web/shell/ahead.js";

test("the first view of a run has its report asked for, the trace its layout", () => {
  assert.deepEqual(asksOf("#/overview?run=0a1b"), ["api/state", "api/runs", "api/runs/0a1b/report"]);
  assert.deepEqual(asksOf("#/ops?run=0a1b&per=step"), ["api/state", "api/runs", "api/runs/0a1b/report"]);
  assert.deepEqual(asksOf("#/trace?run=0a1b"), ["api/state", "api/runs", "api/runs/0a1b/timeline/layout"]);
});

test("other views, ranks and odd names have not", () => {
  for (const hash of ["", "#/runs", "#/sql?run=0a1b", "#/overview", "#/overview?run=0a1b&rank=2", "#/overview?run=a/b"])
    assert.deepEqual(asksOf(hash), ["api/state", "api/runs"]);
});

test("what was not asked for is not there", () => {
  assert.equal(takeAhead("api/state"), undefined);
});
