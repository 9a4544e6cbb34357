// Search over several ranks: when hits lie, which rank comes next, and how a rank got its place in time.

import assert from "node:assert/strict";
import { test } from "node:test";

import { buildLines, clockShort, clockWords, noArrangement } from "../../../src/stepscope/web/timeline/lines.js";
import { leftOut, pageOf } from "../../../src/stepscope/web/timeline/act/hitlist.js";
import { joinedBins, nextRank } from "../../../src/stepscope/web/timeline/act/search.js";

const bins = (/** @type {[number, number][]} */ ...filled) => {
  const all = new Array(512).fill(0);
  for (const [at, number] of filled) all[at] = number;
  return all;
};

test("the bins of one rank that is all there is stay as they are", () => {
  const own = bins([0, 1], [100, 2], [511, 3]);
  assert.deepEqual(joinedBins([{ histogram: own, start: 0, end: 1024 }], 0, 1024), own);
});

test("bins of a rank that begins later lie where it does", () => {
  const found = joinedBins([{ histogram: bins([0, 1]), start: 0, end: 512 }, { histogram: bins([0, 4], [511, 5]), start: 512, end: 1024 }], 0, 1024);
  assert.deepEqual(found, bins([0, 1], [256, 4], [511, 5]));
});

test("the next rank is one with hits, and after the last comes the first", () => {
  const counts = new Map([[2, 3], [0, 1], [1, 0], [5, 7]]);
  const ranks = [2, 0, 1, 5];
  assert.equal(nextRank(ranks, counts, 2, 1), 0);
  assert.equal(nextRank(ranks, counts, 0, 1), 5);
  assert.equal(nextRank(ranks, counts, 5, 1), 2);
  assert.equal(nextRank(ranks, counts, 2, -1), 5);
  assert.equal(nextRank([3], new Map([[3, 2]]), 3, 1), 3);
});

test("how a rank was placed is said, with the error that is left", () => {
  const clock = { aligned_by: /** @type {const} */ ("collectives"), offset_ns: 48_000_000, residual_ns: 2_390, collectives: 1_200, drift_ppm: 40 };
  assert.equal(clockWords(clock), "Its clock was 48.0 ms and 40 ppm off, by the ends of 1,200 collectives: those end within 2.39 µs of each other.");
  assert.equal(clockShort(1, clock), "Rank 1 aligned to ±2.39 µs (1,200 collectives)");
  assert.match(clockWords({ ...clock, aligned_by: "recorded" }), /recorded clock/);
  assert.match(clockShort(1, { ...clock, aligned_by: "begin" }), /begins with/);
  assert.equal(clockWords(null), "");
});

test("a rank's heading has its hits", () => {
  const rank = (/** @type {number} */ number) => ({ rank: number, layout: null, source: null, layers: [], notes: [], counters: [], hits: number * 10 });
  assert.deepEqual(buildLines([rank(0), rank(1)], noArrangement()).lines.map((line) => line.title), ["Rank 0 · 0 found", "Rank 1 · 10 found"]);
});

test("the list has pages, and says how much lies before and after one", () => {
  assert.deepEqual([-1, 0, 199, 200, 1234].map(pageOf), [0, 0, 0, 200, 1200]);
  const hits = Array.from({ length: 200 }, (_, id) => ({ id, name: "", after_ns: 0, dur_ns: 0, step: null }));
  assert.deepEqual(leftOut({ total: 1403, first: 200, hits }), { before: "200 before", after: "1,003 more" });
  assert.deepEqual(leftOut({ total: 3, first: 0, hits: hits.slice(0, 3) }), { before: "", after: "" });
});
