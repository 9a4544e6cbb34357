import assert from "node:assert/strict";
import { test } from "node:test";

import { bandwidthsOf, factsOf, formatsOf, layoutOf, pointsOf, wordsOf, powers } from "../../src/stepscope/web/ui/roofline.js";

const PEAK = {
  device: "H200 SXM",
  flops_per_s: { fp32: 67e12, fp16: 989e12, bf16: 989e12 },
  bytes_per_s: 4.8e12,
  l2_bytes_per_s: 10e12,
};
const row = (changes) => ({
  class: "matmul",
  op: "aten::mm",
  kernels: 57,
  time_ns: 192_573,
  share: 0.134,
  flops_per_s: 5e13,
  bytes_per_s: 4e11,
  share_of_bound: 0.055,
  bound: "flops",
  ...changes,
});

test("a point is its FLOPs per byte and its FLOP/s; copies have none", () => {
  const points = pointsOf([row({}), row({ op: "aten::copy_", flops_per_s: 0 }), row({ flops_per_s: null })]);
  assert.equal(points.length, 1);
  assert.deepEqual([points[0].x, points[0].y], [125, 5e13]);
});

test("formats of one peak are one ceiling, the highest first", () => {
  assert.deepEqual(formatsOf(PEAK.flops_per_s), [
    { name: "fp16, bf16", rate: 989e12 },
    { name: "fp32", rate: 67e12 },
  ]);
  assert.deepEqual(
    bandwidthsOf({ bytes_per_s: 4.8e12, l2_bytes_per_s: null }).map((each) => each.name),
    ["memory"],
  );
});

test("bandwidths rise to the highest peak, peaks begin where a bandwidth meets them", () => {
  const { flat, rising, x, y } = layoutOf(pointsOf([row({})]), PEAK);
  assert.equal(flat[0].from, 98.9);
  assert.ok(flat.every((each) => each.to === x[1] && each.rate < y[1]));
  const memory = rising.find((each) => each.name === "memory");
  assert.ok(Math.abs(memory.to * memory.rate - 989e12) < 1e6);
  assert.ok(rising.every((each) => each.from >= x[0] && each.from * each.rate >= y[0] * 0.999));
});

test("a device of which only the bandwidth is known", () => {
  const { flat, rising, x } = layoutOf(pointsOf([row({})]), { device: "?", bytes_per_s: 1e12 });
  assert.equal(flat.length, 0);
  assert.ok(rising[0].to <= x[1]);
});

test("what a point says, and where it leads", () => {
  const [point] = pointsOf([row({})]);
  assert.deepEqual(wordsOf(point), [
    "aten::mm (matmul)",
    "50 TFLOP/s at 125 FLOP/B, 400 GB/s",
    "5.5 % of its bound, bound by FLOPs",
    "193 µs (13.4 % of compute), 57 kernels",
  ]);
  assert.deepEqual(factsOf(point.row), { op: "aten::mm" });
  assert.equal(factsOf(row({ op: null })), null);
});

test("every power of ten of the axis has its prefix", () => {
  assert.deepEqual(powers([3e11, 2e15]), { tickvals: [1e12, 1e13, 1e14, 1e15], ticktext: ["1T", "10T", "100T", "1P"] });
});
