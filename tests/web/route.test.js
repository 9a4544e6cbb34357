import assert from "node:assert/strict";
import test from "node:test";

import { address } from "../../src/stepscope/web/shell/api.js";
import { changed, integer, parse, write } from "../../src/stepscope/web/shell/route.js";

test("a link says page and parameters, and is read back", () => {
  const params = new URLSearchParams({ run: "ab", filter: "a & b=c?#" });
  const place = parse(write("ops", params));
  assert.equal(place.page, "ops");
  assert.deepEqual([...place.params], [...params]);
});

test("odd links lead to no page, never to another file", () => {
  assert.equal(parse("").page, "");
  assert.equal(parse("#/../../etc/passwd").page, "etcpasswd");
  assert.equal(parse("#/ops").params.toString(), "");
});

test("changes take out what is empty", () => {
  const params = changed(new URLSearchParams("a=1&b=2"), { a: null, b: 3, c: "", d: "x" });
  assert.equal(params.toString(), "b=3&d=x");
});

test("whole numbers only", () => {
  assert.equal(integer(new URLSearchParams("n=-12"), "n"), -12);
  assert.equal(integer(new URLSearchParams("n=1e9"), "n"), null);
  assert.equal(integer(new URLSearchParams(""), "n"), null);
});

test("addresses are relative and leave out what is not set", () => {
  assert.equal(address("api/runs", { rank: null, a: 0, b: false, c: true, d: "x y" }), "api/runs?a=0&c=1&d=x+y");
});
