import assert from "node:assert/strict";
import { test } from "node:test";

import { barsOf } from "../../src/stepscope/web/pages/memory/lifetimes.js";

const life = (begin, end, bytes) => ({ begin, end, bytes, kind: "activation", op: null, scope: null });

test("bars lie on top of each other, the longest life at the bottom", () => {
  const bars = barsOf({ unit: "ns", rows: [life(20, 30, 5), life(10, null, 7)], curve: [[10, 7], [20, 12], [50, 7]], peak_at: 20, left_out: 0, left_bytes: 0 });
  assert.deepEqual(
    bars.map((bar) => [bar.from, bar.to, bar.low, bar.bytes]),
    [
      [0, 40, 0, 7],
      [10, 20, 7, 5],
    ],
  );
});

test("without a curve the first buffer is the beginning", () => {
  const [bar] = barsOf({ unit: "instruction", rows: [life(0, 9, 1)], curve: [], peak_at: null, left_out: 0, left_bytes: 0 });
  assert.deepEqual([bar.from, bar.to], [0, 9]);
});
