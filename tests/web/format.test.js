import assert from "node:assert/strict";
import test from "node:test";

import {
  ago,
  count,
  duration,
  framework,
  many,
  share,
  shown,
  signed,
  size,
  spans,
} from "../../src/stepscope/web/text/format.js";

test("durations have three figures and the unit that fits", () => {
  assert.equal(duration(12), "12 ns");
  assert.equal(duration(1_234), "1.23 µs");
  assert.equal(duration(12_593_248), "12.6 ms");
  assert.equal(duration(1.5e9), "1.50 s");
  assert.equal(duration(-2_000_000), "-2.00 ms");
});

test("sizes are binary", () => {
  assert.equal(size(512), "512 B");
  assert.equal(size(107_082_752), "102 MiB");
});

test("shares tell what is there but rounds to nothing", () => {
  assert.equal(share(0), "0.0 %");
  assert.equal(share(0.0003), "< 0.1 %");
  assert.equal(share(0.795), "79.5 %");
});

test("thousands are grouped, and words agree with their number", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(many(1, "row"), "1 row");
  assert.equal(many(1200, "row"), "1,200 rows");
});

test("what is not known is a dash, also where a number was expected", () => {
  assert.equal(shown(null, "ns"), "–");
  assert.equal(shown(undefined, "text"), "–");
  assert.equal(shown("9007199254740993", "ns"), "9007199254740993");
  assert.equal(shown([4, 2, 1], "extent"), "4×2×1");
  assert.equal(shown(true, "flag"), "yes");
});

test("differences carry their sign", () => {
  assert.equal(signed(-5_203_513, duration), "−5.20 ms");
  assert.equal(signed(0, duration), "0 ns");
});

test("ranks as spans, frameworks as they spell themselves", () => {
  assert.equal(spans([0, 1, 2, 7, 5]), "0–2, 5, 7");
  assert.equal(framework("pytorch, jax"), "PyTorch, JAX");
  assert.equal(framework(null), "unknown framework");
});

test("how long ago", () => {
  assert.equal(ago(0, 3 * 3600 * 1000), "3 hours ago");
  assert.equal(ago(1e9, 1000), "just now");
  assert.equal(ago(0, 3.2 * 365.25 * 86400 * 1000), "3 years ago");
});
