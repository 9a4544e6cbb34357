import assert from "node:assert/strict";
import { test } from "node:test";

import { titleOf } from "../../src/stepscope/web/shell/runlist.js";

const run = (/** @type {string} */ id, /** @type {string} */ place, /** @type {string} */ name) => ({ id, place, name });

test("runs of the same name are told apart by their places", () => {
  const runs = [run("1", "/logs/before", "step.json"), run("2", "/logs/after", "step.json"), run("3", "/logs/after", "other.json")];
  assert.deepEqual(runs.map((each) => titleOf(each, runs)), ["before/step.json", "after/step.json", "other.json"]);
});

test("by as much of them as is needed", () => {
  const runs = [run("1", "/a/logs", "x"), run("2", "/b/logs", "x"), run("3", "s3://c/logs/", "x")];
  assert.deepEqual(runs.map((each) => titleOf(each, runs)), ["a/logs/x", "b/logs/x", "c/logs/x"]);
});

test("what cannot be told apart has its whole place", () => {
  const runs = [run("1", "/a", "x"), run("2", "/a", "x")];
  assert.equal(titleOf(runs[0], runs), "a/x");
});
