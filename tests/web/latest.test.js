import assert from "node:assert/strict";
import { test } from "node:test";

import { latest } from "../../src/stepscope/web/shell/latest.js";

/** An answer that comes when it is told to. */
function late() {
  let give = (/** @type {any} */ _value) => {};
  let fail = (/** @type {any} */ _error) => {};
  const answer = new Promise((done, failed) => ([give, fail] = [done, failed]));
  return { answer, give, fail };
}

test("an answer that comes after a later question does not count", async () => {
  const only = latest();
  const [first, second] = [late(), late()];
  const [one, two] = [only(first.answer), only(second.answer)];
  second.give("new");
  first.give("old");
  assert.equal(await two, "new");
  await assert.rejects(one, { name: "AbortError" });
});

test("nor does its failure", async () => {
  const only = latest();
  const first = late();
  const one = only(first.answer);
  assert.equal(await only("new"), "new");
  first.fail(new Error("old"));
  await assert.rejects(one, { name: "AbortError" });
});

test("a single question is answered, or fails, as it is", async () => {
  const only = latest();
  assert.equal(await only(Promise.resolve(1)), 1);
  await assert.rejects(only(Promise.reject(new Error("no"))), /no/);
});
