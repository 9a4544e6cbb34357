import assert from "node:assert/strict";
import test from "node:test";

import { errorWords, matches, stateWords } from "../../src/stepscope/web/shell/runlist.js";
import { filtered, sorted } from "../../src/stepscope/web/ui/tables.js";

const rows = [
  { name: "b", ns: 2 },
  { name: "a", ns: null },
  { name: "c", ns: 10 },
];

test("sorting knows numbers, and leaves what is not known at the end", () => {
  assert.deepEqual(
    sorted(rows, "ns", true).map((row) => row.name),
    ["c", "b", "a"],
  );
  assert.deepEqual(
    sorted(rows, "ns", false).map((row) => row.name),
    ["b", "c", "a"],
  );
  assert.deepEqual(
    sorted(rows, "name", false).map((row) => row.name),
    ["a", "b", "c"],
  );
});

test("filtering looks at what is shown and what is meant", () => {
  const columns = [
    { key: "name", title: "name", kind: "name" },
    { key: "ns", title: "time", kind: "ns" },
  ];
  assert.equal(filtered(rows, columns, "").length, 3);
  assert.deepEqual(
    filtered(rows, columns, "10 NS").map((row) => row.name),
    ["c"],
  );
});

const run = {
  id: "ff",
  name: "Runs/Today",
  place: "/logs",
  format: "kineto",
  state: "loading",
  progress: { stage: "reading", done: 1, total: 4 },
  error: null,
};

test("all words must be somewhere in the run", () => {
  assert.ok(matches(run, "today KINETO"));
  assert.ok(matches(run, ""));
  assert.ok(!matches(run, "today xplane"));
});

test("states in words", () => {
  assert.equal(stateWords(run), "reading 25 %");
  assert.equal(stateWords({ ...run, state: "new" }), "not opened yet");
  assert.equal(
    errorWords({ ...run, error: { what: "It is cut.", fix: "Copy it again." } }),
    "It is cut.\nCopy it again.",
  );
});
