// What is behind slices, where nothing covers it, and when curves are asked for.

import assert from "node:assert/strict";
import { test } from "node:test";

import { blankLine, blankRows, uncovered } from "../../../src/stepscope/web/timeline/draw/background.js";
import { CounterTiles } from "../../../src/stepscope/web/timeline/draw/counters.js";
import { paintCurve } from "../../../src/stepscope/web/timeline/draw/curve.js";
import { ROW } from "../../../src/stepscope/web/timeline/lines.js";

globalThis.window ??= globalThis;

const source = { id: "0", query: {}, shift: 0, rank: 0, layer: "events" };
const soon = () => new Promise((done) => setTimeout(done, 5));

test("the line without slices has the marks of the ruler, as far as they are in view", () => {
  const pixels = new Uint32Array(8).fill(9);
  blankLine(pixels, 8, [-1, 3, 7, 8], 2, 1, 5);
  assert.deepEqual([...pixels], [5, 1, 1, 5, 5, 1, 1, 5]);
});

test("rows begin as that line, strips of groups in one colour, pinned ones with a bar", () => {
  const pixels = new Uint32Array(4 * 4).fill(9);
  blankLine(pixels, 4, [2], 1, 1, 5);
  blankRows(pixels, 4, 1, 1, null, null);
  blankRows(pixels, 4, 2, 1, 7, null);
  blankRows(pixels, 4, 3, 1, null, { columns: 2, colour: 8 });
  const lines = [1, 2, 3].map((line) => [...pixels.slice(4 * line, 4 * line + 4)]);
  assert.deepEqual(lines, [[1, 1, 5, 1], [7, 7, 7, 7], [8, 8, 5, 1]]);
});

test("every height is painted, by rows or by what is behind them", () => {
  const height = 200;
  for (const runs of [[], [{ y: 2, count: 3 }], [{ y: -7, count: 2 }, { y: 40, count: 1 }, { y: 58, count: 4 }, { y: 190, count: 1 }], [{ y: 0, count: 12 }]]) {
    const painted = new Uint8Array(height);
    for (const { top, bottom } of uncovered(runs, height)) painted.fill(1, top, bottom);
    for (const run of runs) painted.fill(1, Math.max(0, run.y), run.y + run.count * ROW);
    assert.ok(painted.every(Boolean), JSON.stringify(runs));
  }
  assert.deepEqual(uncovered([{ y: 0, count: 12 }], height), []);
  assert.deepEqual(uncovered([{ y: 2, count: 1 }, { y: 2 + ROW, count: 1 }], 2 + 2 * ROW), [{ top: 0, bottom: 3 }], "nothing is painted twice between rows that touch");
});

test("a level that is kept is painted as its columns would be", () => {
  const count = 40;
  const lasts = Float32Array.from({ length: count }, (_, x) => (x < 5 ? 1 : x < 30 ? 3 : 2));
  const highs = lasts.map((level, x) => (x === 12 ? 4 : level));
  const whole = new Uint32Array(5 * count);
  paintCurve(whole, 0, count, 5, { highs, lasts, count }, 4, 7, 8);
  for (let x = 0; x < count; x += 1) {
    const before = lasts[Math.max(0, x - 1)];
    const expected = [4, 3, 2, 1, 0].map((value) => (value > Math.max(highs[x], before) ? 0 : value >= Math.min(before, lasts[x]) ? 8 : 7));
    assert.deepEqual([0, 1, 2, 3, 4].map((y) => whole[y * count + x]), expected, `column ${x}`);
  }
});

test("curves are asked for after the frame, one at a time in motion, and all of the last frame at rest", async () => {
  /** @type {[number, (buffer: ArrayBuffer) => void][]} */
  const asked = [];
  const tiles = new CounterTiles((_source, _counter, level) => new Promise((done) => { asked.push([level, done]); }), () => {});
  const frame = (/** @type {number[]} */ levels, /** @type {boolean} */ isMoving) => {
    for (const level of levels) tiles.get(source, "memory", level, 0, true);
    tiles.ask(isMoving);
  };
  frame([1, 2], true);
  assert.equal(asked.length, 0, "not while it is painted");
  frame([3, 4], true);
  await soon();
  assert.deepEqual(asked.map(([level]) => level), [3], "what the last frame lacked, and no more than one");
  frame([5], true);
  await soon();
  assert.equal(asked.length, 1, "the next waits for it");
  frame([5, 6], false);
  await soon();
  assert.deepEqual(asked.map(([level]) => level), [3, 5, 6]);
  for (const [, done] of asked) done(new ArrayBuffer(16));
  await soon();
  assert.ok(tiles.get(source, "memory", 3, 0, true));
  frame([3, 5, 6], false);
  await soon();
  assert.equal(asked.length, 3, "what is at hand is not asked for again");
});
