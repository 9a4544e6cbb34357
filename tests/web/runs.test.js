import assert from "node:assert/strict";
import { test } from "node:test";

import { changeShown, changeWords, compared, hasWords, linesOf, tipOf, trendsOf, verdictOf, gainOf } from "../../src/stepscope/web/pages/runs/lines.js";

const DAY = 86_400e9;
const run = (id, changes) => ({ id, name: `${id}.json`, place: "/logs", format: "kineto", files: 1, bytes: 2048, ranks: 1, modified_ns: DAY, state: "new", ...changes });
const figures = (changes) => ({
  step_ns: 10e6,
  p90_ns: 11e6,
  steps: 5,
  busy_share: 0.4,
  mfu: null,
  parts: { compute: 0.4, dispatch: 0.5, input: 0.1, sync: 0.001 },
  finding: { code: "launch-bound", title: "The host launches work too slowly", low: 1.5, mid: 2, high: 3, is_advice: false },
  findings: 1,
  problems: 0,
  peak_bytes: 1 << 30,
  capacity_bytes: 4 * (1 << 30),
  devices: "NVIDIA H200",
  framework: "pytorch",
  ranks: 1,
  recorded_unix_ns: 20 * DAY,
  commit: "0123456789abcdef",
  noise: { mean_ns: 10e6, error_ns: 1e5 },
  ...changes,
});
const board = (known, changes = {}) => ({ figures: known, jobs: { a: "bert", b: "bert", c: "gpt" }, changes, waiting: ["c"] });
const slower = { since: "a", before_ns: 10e6, difference_ns: 5e6, margin_ns: 1e6, verdict: "slower" };

test("runs have the name of their job, and of the moment where there are several", () => {
  const lines = linesOf([run("a"), run("b"), run("c")], board({ a: figures({}) }));
  assert.deepEqual(
    lines.map((line) => line.title),
    ["bert, 1970-01-21 00:00", "bert, 1970-01-02 00:00", "gpt"],
  );
  assert.match(tipOf(lines[0]), /a\.json\n\/logs\nKineto, 1 file, 2\.00 KiB/);
});

test("a run without figures has none, and may be waited for", () => {
  const [line] = linesOf([run("c")], board({}));
  assert.equal(line.step, null);
  assert.equal(line.verdict, null);
  assert.ok(line.isWaiting);
});

test("the verdict is how busy the device is, and what it waits for", () => {
  assert.equal(verdictOf(figures({})), "busy 40.0 %, dispatch 50.0 %");
  assert.equal(verdictOf(figures({ busy_share: 1, parts: { compute: 1 } })), "busy 100.0 %");
  assert.equal(verdictOf(figures({ busy_share: null, parts: {} })), null);
});

test("words are looked for in all that is known", () => {
  const [line] = linesOf([run("a")], board({ a: figures({}) }, { a: slower }));
  for (const words of ["bert h200", "LAUNCH-BOUND", "pytorch slower", "a.json", "", "0123456"]) assert.ok(hasWords(line, words), words);
  assert.ok(!hasWords(line, "bert tpu"));
});

test("a change is shown where it exceeds noise", () => {
  assert.equal(changeShown(slower), "+50.0 %");
  assert.equal(changeShown({ ...slower, verdict: "same" }), "±");
  assert.equal(changeWords(slower), "+5.00 ms ± 1.00 ms since the run before (mean of the recorded steps)");
});

test("a trend is of jobs with several runs, in the order of time", () => {
  const known = { a: figures({ recorded_unix_ns: 3 * DAY }), b: figures({ recorded_unix_ns: 2 * DAY }), c: figures({}) };
  const trends = trendsOf(linesOf([run("a"), run("b"), run("c")], board(known)));
  assert.deepEqual(
    trends.map((job) => job.map((line) => line.id)),
    [["b", "a"]],
  );
});

test("several beside each other: changes are against the first, what no one has is left out", () => {
  const lines = linesOf([run("a"), run("b"), run("c")], board({ a: figures({}), b: figures({ step_ns: 12e6, commit: null }) }));
  const rows = Object.fromEntries(compared(lines).map((row) => [row.title, row.cells]));
  assert.deepEqual(rows.step, ["10.0 ms", "12.0 ms (+20.0 %)", "…"]);
  assert.deepEqual(rows.dispatch, ["50.0 %", "50.0 %", "…"]);
  assert.ok(!("synchronisation" in rows));
  assert.deepEqual(rows.MFU, ["–", "–", "…"]);
});

test("a finding about memory promises no speed-up", () => {
  const finding = { code: "out-of-memory", title: "Out of memory", low: 1, mid: 1, high: 1, is_advice: false };
  assert.equal(gainOf({ finding }), "");
  assert.equal(gainOf({ finding: { ...finding, low: 1.4, mid: 1.6, high: 2.1 } }), "1.40–2.10× (most likely 1.60×)");
  assert.equal(gainOf({ finding: { ...finding, high: 2, is_advice: true } }), "");
});
