import assert from "node:assert/strict";
import test from "node:test";

import { evidence } from "../../src/stepscope/web/text/evidence.js";
import { pageOf } from "../../src/stepscope/web/pages/overview/findings.js";
import { headlines, verdict } from "../../src/stepscope/web/pages/overview/verdict.js";

const part = (name, share) => ({ part: name, ns: share * 1e6, share, names: [], names_total: 0, named_share: 1 });
const finding = {
  code: "launch-bound",
  class: "time",
  title: "The host launches work too slowly",
  detail: "",
  evidence: {},
  share: 0.8,
  saves_ns_per_step: 5,
  speedup: { low: 3.5, mid: 4.333, high: 6 },
  fix: "",
};
const report = (changes) => ({
  problems: [],
  breakdown: [part("compute", 0.04), part("dispatch", 0.8), part("input", 0.16)],
  findings: [finding],
  steps: { count: 3, basis: "recorded", basis_ns: 11_560_499, rows: [], critical_devices: {}, sentence: "A step takes 11.6 ms as recorded." },
  device: { mfu: null, busy_share: 0.04 },
  ...changes,
});

test("opens with the report's own sentence", () => {
  assert.equal(verdict(report({ sentence: "The host launches work too slowly. And more." })), "The host launches work too slowly. And more.");
});

test("a report that lacks the sections for it opens with its steps", () => {
  assert.equal(verdict(report({ sentence: "" })), "A step takes 11.6 ms as recorded.");
  assert.match(verdict(report({ sentence: "", steps: { sentence: "" } })), /whole recording/);
});

test("the first figures leave out what is not known", () => {
  assert.deepEqual(
    headlines(report({ findings: [] })).map(([label]) => label),
    ["mean of 3 steps, as recorded", "device busy", "idle: dispatch"],
  );
});

test("of several devices it says which one is busy so long", () => {
  const rows = [0, 1].map((device) => ({ rank: 0, device, step: 0, start_ns: 0, duration_ns: 1, parts: {}, partial: false, outlier: false }));
  const steps = { ...report({}).steps, rows, critical_devices: { 0: 1 } };
  assert.equal(headlines(report({ steps, findings: [] }))[1][0], "device 1 busy");
});

test("the card of the top finding has its bounds, and below them what is most likely", () => {
  assert.deepEqual(headlines(report({})).at(-1), ["speed-up of the top finding, most likely 4.3×", "3.5–6.0×"]);
  const sure = { ...finding, speedup: { low: 120, mid: 130, high: 150 } };
  assert.deepEqual(headlines(report({ findings: [sure] })).at(-1), ["speed-up of the top finding", "more than 100×"]);
});

test("evidence in words", () => {
  const words = evidence({
    ...finding,
    evidence: {
      names: [{ name: "aten::mm", ns_per_step: 1500 }],
      freed_bytes: 2048,
      idle_share: 0.5,
      calls: 1200,
      none: null,
      empty: [],
    },
  });
  assert.deepEqual(words, [
    ["names", "aten::mm (per step 1.50 µs)"],
    ["freed", "2.00 KiB"],
    ["idle share", "50.0 %"],
    ["calls", "1,200"],
  ]);
});

test("a finding leads to a page that has something to show", () => {
  assert.equal(pageOf("device", true), "device");
  assert.equal(pageOf("device", false), "trace");
  assert.equal(pageOf("input", false), "input");
  assert.equal(pageOf("no-such-page", true), "trace");
});
