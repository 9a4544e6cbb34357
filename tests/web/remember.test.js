import assert from "node:assert/strict";
import { test } from "node:test";

import { recall, remember } from "../../src/stepscope/web/shell/remember.js";

const room = () => {
  const kept = new Map();
  return { setItem: (key, value) => void kept.set(key, value), getItem: (key) => kept.get(key) ?? null };
};

test("the place of before, if its run is still there", () => {
  const tab = room();
  assert.equal(recall(() => true, tab), "");
  remember("#/steps?run=1&rank=2", tab);
  assert.equal(recall((run) => run === "1", tab), "#/steps?run=1&rank=2");
  assert.equal(recall(() => false, tab), "");
  remember("#/runs", tab);
  assert.equal(recall(() => false, tab), "#/runs");
});

test("without storage there is no place", () => {
  remember("#/runs", null);
  assert.equal(recall(() => true, null), "");
  remember("#/runs", { setItem: () => { throw new Error("full"); } });
});
