import assert from "node:assert/strict";
import { test } from "node:test";

import { stepsOf } from "../../src/stepscope/web/ui/account.js";
import { perStep } from "../../src/stepscope/web/ui/servertable.js";

test("times are whole nanoseconds, FLOPs need not be", () => {
  assert.equal(perStep(1000, 3, "ns"), 333);
  assert.equal(perStep(5, 2, "flops"), 2.5);
  assert.equal(perStep(5.5, 1, "ns"), 5.5);
});

test("steps of each rank's critical device are counted; a whole recording has none", () => {
  const row = (rank, device) => ({ rank, device });
  const report = { steps: { source: "marker", critical_devices: { 0: 1 }, rows: [row(0, 0), row(0, 1), row(0, 1)] } };
  assert.equal(stepsOf(report), 2);
  assert.equal(stepsOf({ steps: { ...report.steps, source: "whole" } }), null);
  assert.equal(stepsOf({ steps: { ...report.steps, rows: [] } }), null);
});
