import assert from "node:assert/strict";
import { test } from "node:test";

import { binned, deviations } from "../../src/stepscope/web/pages/device/busy.js";

test("each stretch has the mean of what reaches into it", () => {
  const pieces = [
    { device: 0, start_ns: 100, end_ns: 150, busy: 1 },
    { device: 0, start_ns: 150, end_ns: 250, busy: 0.5 },
  ];
  assert.deepEqual(binned(pieces, 100, 300, 4), [1, 0.5, 0.5, null]);
  assert.deepEqual(binned(pieces, 100, 300, 2), [0.75, 0.5]);
});

test("deviations are from the median of all devices at each moment", () => {
  assert.deepEqual(deviations([[1, 0.5], [0.5, null], [0, 0.25]]), [[0.5, 0.125], [0, null], [-0.5, -0.125]]);
  assert.deepEqual(deviations([]), []);
  assert.deepEqual(deviations([[null]]), [[null]]);
});
