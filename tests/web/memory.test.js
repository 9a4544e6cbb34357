// Which memory the page shows first.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fullest } from "../../src/stepscope/web/ui/pieces.js";

const memory = (/** @type {string} */ device_kind, /** @type {number} */ peak_bytes, /** @type {number | null} */ capacity_bytes) => ({ device_kind, peak_bytes, capacity_bytes });

test("the fullest device is shown first", () => {
  assert.equal(fullest([memory("gpu", 190, 1000), memory("cpu", 5000, null), memory("gpu", 900, 1000), memory("gpu", 950, 4000)]), 2);
  assert.equal(fullest([memory("cpu", 9, null), memory("gpu", 1, null), memory("gpu", 3, null)]), 2);
  assert.equal(fullest([memory("gpu", 5, 10), memory("gpu", 5, 10)]), 0);
});
