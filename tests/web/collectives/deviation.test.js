import assert from "node:assert/strict";
import { test } from "node:test";

import { areMany, gridOf } from "../../../src/stepscope/web/pages/collectives/deviation.js";
import { shownRanks } from "../../../src/stepscope/web/pages/collectives/waits.js";

/** @param {number} ranks @param {number} steps @param {(rank: number, step: number) => number} value */
function values(ranks, steps, value) {
  return Array.from({ length: ranks * steps }, (_, at) => {
    const rank = Math.floor(at / steps);
    return { rank, step: at % steps, value: value(rank, at % steps) };
  });
}

test("thousands of ranks and steps are a bounded number of cells, and the slow rank is named", () => {
  const found = gridOf(
    values(4096, 200, (rank, step) => (rank === 1234 && step >= 100 ? 150 : 100)),
    [],
  );
  assert.ok(found.rows.length <= 64 && found.columns.length <= 120);
  const at = found.rows.findIndex((row) => row.ranks.includes(1234));
  assert.deepEqual(found.cells[at].at(-1), { deviation: 0.5, rank: 1234 });
  assert.equal(found.cells[at][0]?.deviation, 0);
  assert.equal(found.rows.reduce((sum, row) => sum + row.ranks.length, 0), 4096);
});

test("a rank is measured against its role", () => {
  const roles = [0, 1].map((stage) => Array.from({ length: 64 }, (_, at) => 64 * stage + at));
  const found = gridOf(values(128, 3, (rank) => (rank < 64 ? 100 : 300) * (rank === 70 ? 0.9 : 1)), roles, 16);
  assert.equal(found.rows.length, 16);
  assert.equal(found.rows[8].label, "stage 1, ranks 64–71");
  assert.equal(found.cells[8][0]?.rank, 70);
  assert.ok(Math.abs((found.cells[8][0]?.deviation ?? 0) + 0.1) < 1e-9);
  assert.equal(found.cells[0][0]?.deviation, 0);
});

test("more roles than rows are put together", () => {
  const roles = Array.from({ length: 500 }, (_, at) => [2 * at, 2 * at + 1]);
  assert.ok(gridOf(values(1000, 1, () => 1), roles).rows.length <= 64);
});

test("nothing recorded", () => {
  assert.deepEqual(gridOf([], []).cells, []);
  assert.ok(!areMany(64) && areMany(65));
});

test("of many ranks the squares are those of the longest waits", () => {
  const all = Array.from({ length: 1000 }, (_, rank) => rank);
  const waits = all.map((rank) => ({ rank, for_rank: 17, wait_ns: rank }));
  const shown = shownRanks(all, waits);
  assert.equal(shown.length, 64);
  assert.ok(shown.includes(17) && shown.includes(999) && !shown.includes(500));
  assert.deepEqual(shownRanks([0, 1], waits), [0, 1]);
});
