// Totals of a range over several ranks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { busyWords } from "../../../src/stepscope/web/timeline/act/ranges.js";
import { joined, joinedParts, pivotRows, rangeQuery } from "../../../src/stepscope/web/timeline/act/totals.js";

const name = (/** @type {number} */ count, /** @type {number} */ total) => ({ name: "mm", kind: "kernel", count, total_ns: total, self_ns: total, mean_ns: total / count, max_ns: total });
const of = (/** @type {number} */ count, /** @type {number} */ total) => ({
  events: count, steps: 2, names: [name(count, total)], names_total: 3, tracks: [{ title: "stream 7", count, busy_ns: total, busy_share: 0.5 }], devices: [{ title: "GPU 0", busy_share: 0.5 }],
});

test("one rank stays as it is", () => {
  assert.deepEqual(joined([{ rank: 4, found: of(2, 10) }]), of(2, 10));
});

test("names are summed, tracks and devices say their rank", () => {
  const found = joined([{ rank: 0, found: of(2, 10) }, { rank: 3, found: of(3, 40) }]);
  assert.equal(found.events, 5);
  assert.deepEqual(found.names, [{ name: "mm", kind: "kernel", count: 5, total_ns: 50, self_ns: 50, mean_ns: 10, max_ns: 40 }]);
  assert.equal(found.names_total, 3);
  assert.deepEqual(found.tracks.map((each) => each.title), ["rank 0: stream 7", "rank 3: stream 7"]);
  assert.deepEqual(found.devices.map((each) => each.title), ["GPU 0 of rank 0", "GPU 0 of rank 3"]);
});

test("parts are summed and shares are of all", () => {
  const found = joinedParts([[{ part: "compute", ns: 30, share: 1 }], [{ part: "compute", ns: 30, share: 0.75 }, { part: "input", ns: 20, share: 0.25 }], []]);
  assert.deepEqual(found, [{ part: "compute", ns: 60, share: 0.75 }, { part: "input", ns: 20, share: 0.25 }]);
});

test("of many devices the least and the most busy are named", () => {
  const devices = [0.4, 0.1, 0.9, 0.5].map((busy, rank) => ({ title: `GPU 0 of rank ${rank}`, busy_share: busy }));
  assert.equal(busyWords(devices.slice(0, 1)), "GPU 0 of rank 0 40.0 % busy");
  assert.equal(busyWords(devices), "4 devices, from 10.0 % busy (GPU 0 of rank 1) to 90.0 % (GPU 0 of rank 2)");
});

test("a row has its time per step and its share of the time of all tracks", () => {
  const [row] = pivotRows([name(4, 100)], 2.5, 400, 1);
  assert.deepEqual([row.step_ns, row.share], [40, 0.25]);
  assert.equal(pivotRows([name(4, 600)], 2.5, 400, 3)[0].share, 0.5);
  assert.equal(pivotRows([name(4, 100)], null, 400, 0)[0].share, 0.25);
  assert.equal(pivotRows([name(4, 100)], null, 400, 1)[0].step_ns, null);
});

test("the query for a range is one for all ranks", () => {
  assert.equal(rangeQuery(["a < 1"]), "SELECT *\nFROM events\nWHERE a < 1\nORDER BY start_ns, id");
  assert.match(rangeQuery(["rank = 0 AND a < 1", "rank = 1 AND a < 2"]), /WHERE \(rank = 0 AND a < 1\)\n {3}OR \(rank = 1 AND a < 2\)\n/);
});
