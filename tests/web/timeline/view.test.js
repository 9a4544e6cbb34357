// Times on pixels: zooming, panning, focus, the ruler, and the level of detail.

import assert from "node:assert/strict";
import { test } from "node:test";

import { lastToCome } from "../../../src/stepscope/web/timeline/act/related.js";
import { curveOf, paintCurve } from "../../../src/stepscope/web/timeline/draw/curve.js";
import { niceStep, ticks, tickText } from "../../../src/stepscope/web/timeline/draw/ruler.js";
import { SHORTEST_NS, Viewport } from "../../../src/stepscope/web/timeline/viewport.js";

function view() {
  const found = new Viewport(0, 1e9);
  found.width = 1000;
  return found;
}

test("zooming keeps the time under the pointer where it is", () => {
  const found = view();
  for (const factor of [0.5, 0.1, 0.9, 2, 0.3]) {
    const before = found.time(420);
    found.zoom(factor, 420);
    assert.ok(Math.abs(found.time(420) - before) < 1e-3 * found.span);
  }
});

test("zooming stops at a few nanoseconds and at the whole trace", () => {
  const found = view();
  found.zoom(1e-30, 500);
  assert.equal(Math.round(found.span), SHORTEST_NS);
  found.zoom(1e30, 500);
  assert.ok(found.span <= 1.1e9 + 1);
  assert.ok(found.start <= 0 && found.end >= 1e9);
});

test("panning stops soon after the trace ends", () => {
  const found = view();
  found.show(4e8, 5e8);
  found.pan(1e12);
  assert.ok(found.start < 1e9);
  assert.equal(Math.round(found.span), 1e8);
  found.pan(-1e12);
  assert.ok(found.end > 0);
});

test("focus centres first and fills then", () => {
  const found = view();
  found.show(0, 2e8);
  found.focus(6e8, 6.1e8);
  assert.ok(Math.abs((found.start + found.end) / 2 - 6.05e8) < 1);
  assert.equal(Math.round(found.span), 2e8);
  found.focus(6e8, 6.1e8);
  assert.ok(found.span < 1.3e7);
});

test("focus fills also where the end of the trace keeps a slice from the middle", () => {
  const found = view();
  found.show(found.low, found.high);
  found.focus(found.low, found.low + 1e6);
  found.focus(found.low, found.low + 1e6);
  assert.ok(found.span < 1.3e6);
});

test("what is seen already is not moved to", () => {
  const found = view();
  found.show(1e8, 2e8);
  found.reveal(1.2e8, 1.3e8);
  assert.equal(Math.round(found.start), 1e8);
  found.reveal(7e8, 7.1e8);
  assert.ok(found.start < 7e8 && found.end > 7.1e8);
});

test("nonsense is not shown", () => {
  const found = view();
  found.show(Number.NaN, 5);
  found.show(0, Infinity);
  assert.equal(found.start, 0);
  assert.equal(found.end, 1e9);
});

test("times stay exact far from zero", () => {
  const found = new Viewport(0, 8e15);
  found.width = 1600;
  found.show(4e15, 4e15 + 1600);
  assert.equal(found.x(4e15 + 100), 100);
});

test("buckets of the level are about a pixel wide", () => {
  const found = view();
  for (const span of [1e9, 3e8, 1e5, 5000]) {
    found.show(0, span);
    const pixels = 2 ** found.level() / found.scale;
    assert.ok(pixels > 0.7 && pixels < 1.42, `${span}: ${pixels}`);
    assert.ok(found.level(2) < found.level() || found.level() === 0);
  }
});

test("marks of the ruler lie at round times with as many figures as they need", () => {
  assert.equal(niceStep(3), 5);
  assert.equal(niceStep(1000), 1000);
  assert.equal(niceStep(1001), 2000);
  assert.equal(tickText(1_500_000, 500_000), "1.5 ms");
  assert.equal(tickText(0, 1000), "0 µs");
  assert.equal(tickText(1_200_000_005, 5), "1.200000005 s");
  const { marks } = ticks(0, 1e9, 1000);
  assert.deepEqual(marks.slice(0, 3).map((mark) => mark.text), ["0 ms", "200 ms", "400 ms"]);
  assert.ok(ticks(0, 1e9, 1e9).marks.length <= 200);
});

test("a curve has the greatest value of each column, and keeps its level where nothing is told", () => {
  const tile = { begin: 0, step: 10, places: Int32Array.of(-1, 2, 3), lows: Float32Array.of(1, 1, 1), highs: Float32Array.of(1, 9, 4), lasts: Float32Array.of(1, 2, 4) };
  const curve = curveOf([tile], 0, 20, 6);
  assert.deepEqual([...curve.highs], [1, 9, 4, 4, 4, 4]);
  assert.deepEqual([...curve.lasts], [1, 4, 4, 4, 4, 4]);
  assert.equal(curve.count, 6);
  assert.deepEqual([...curveOf([tile], 25, 20, 2).highs], [4, 4], "a peak before the view is not in it");
  assert.deepEqual([...curveOf([], 0, 20, 6).lasts], [0, 0, 0, 0, 0, 0]);
  assert.equal(curveOf([], 0, 20, 6).count, 0);
});

test("a curve is an edge with an area below it", () => {
  const pixels = new Uint32Array(4 * 3);
  paintCurve(pixels, 0, 3, 4, { highs: Float32Array.of(0, 3, 1), lasts: Float32Array.of(0, 1, 1), count: 3 }, 3, 7, 8);
  const lines = [0, 1, 2, 3].map((y) => [...pixels.slice(3 * y, 3 * y + 3)]);
  assert.deepEqual(lines, [[0, 8, 0], [0, 8, 0], [0, 8, 8], [8, 8, 7]]);
});

test("the last to come to a collective is the one that starts last on the common clock", () => {
  const call = (/** @type {number} */ rank, /** @type {number} */ start) => ({ rank, id: rank, track: 0, row: 0, after_ns: 0, dur_ns: 10, start_ns: start });
  assert.equal(lastToCome([call(0, 5), call(1, 9), call(2, 7)]).rank, 1);
});
