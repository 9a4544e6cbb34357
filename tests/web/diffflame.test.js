import assert from "node:assert/strict";
import { test } from "node:test";

import { change, mixed } from "../../src/stepscope/web/pages/compare/diffflame.js";

test("colours go from one to the other", () => {
  assert.equal(mixed("#000000", "#ff8040", 0), "#000000");
  assert.equal(mixed("#000000", "#ff8040", 1), "#ff8040");
  assert.equal(mixed(" #102030", "#102030", 0.3), "#102030");
});

test("a change is of the larger", () => {
  assert.equal(change(0, 5), 1);
  assert.equal(change(4, 0), -1);
  assert.equal(change(2, 1), -0.5);
  assert.equal(change(0, 0), 0);
});
