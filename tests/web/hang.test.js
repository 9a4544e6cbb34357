import assert from "node:assert/strict";
import { test } from "node:test";

import { rowOf } from "../../src/stepscope/web/pages/overview/hang.js";

const CALL = {
  ranks: [0, 1, 3], state: "waits", group: "default_pg (0)", op: "all_reduce", sequence: 5, sizes: "[1024]", dtype: "Float",
  function: "step", place: "/job/train.py:88", stack: [],
};

test("ranks in equal calls are one row, with the line but not the folder", () => {
  const row = rowOf(CALL);
  assert.equal(row.ranks, "0–1, 3");
  assert.equal(row.state, "waits in");
  assert.equal(row.place, "train.py:88");
});

test("a rank without a dump has no call", () => {
  const row = rowOf({ ...CALL, ranks: [2], state: "no dump", op: null, place: null });
  assert.equal(row.ranks, "2");
  assert.equal(row.place, null);
});
