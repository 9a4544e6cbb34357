import assert from "node:assert/strict";
import { test } from "node:test";

import { binWords, seriesOf } from "../../../src/stepscope/web/pages/collectives/waitbins.js";

test("each bin is twice the one before", () => {
  assert.deepEqual([0, 1, 2, 11].map(binWords), ["< 1 µs", "1 µs – 2 µs", "2 µs – 4 µs", "1.02 ms – 2.05 ms"]);
});

test("groups and types of an operation are one series, rows without waits are none", () => {
  const rows = [
    { name: "all_reduce", group: "a", wait_histogram: [1, 2] },
    { name: "broadcast", group: "a", wait_histogram: [9] },
    { name: "all_reduce", group: "b", wait_histogram: [1, 0, 7] },
    { name: "send", wait_histogram: null },
  ];
  assert.deepEqual(seriesOf(rows), [
    { name: "all_reduce", counts: [2, 2, 7] },
    { name: "broadcast", counts: [9] },
  ]);
});

test("of many operations the rarest are one", () => {
  const rows = Array.from({ length: 9 }, (_, at) => ({ name: `op ${at}`, wait_histogram: [9 - at] }));
  const found = seriesOf(rows);
  assert.equal(found.length, 7);
  assert.deepEqual(found[6], { name: "3 others", counts: [6] });
});
