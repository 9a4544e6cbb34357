import assert from "node:assert/strict";
import { test } from "node:test";

import { layOutMap, pieceAt, pieceBeside } from "../../../src/stepscope/web/pages/memory/map.js";

/** @param {string} segment @param {number} offset @param {number} bytes */
const piece = (segment, offset, bytes, kind = "activation") => ({ segment, address: `${segment}${offset}`, offset, bytes, kind, requested: bytes, stack: 1, time_ns: 0, count: 1, line: null });
const segment = (/** @type {string} */ name, /** @type {number} */ bytes) => ({ segment: name, bytes, segment_kind: "large", stream: 0 });

test("blocks are in their segments, one segment after another, wrapped to the width", () => {
  const pieces = new Map([
    ["a", [piece("a", 0, 600), piece("a", 600, 400, "free")]],
    ["b", [piece("b", 0, 1000)]],
  ]);
  const { rects, rows } = layOutMap([segment("a", 1000), segment("b", 1000)], pieces, 100);
  assert.ok(rows >= 24 && rows <= 26);
  assert.ok(rects.every((rect) => rect.x >= 0 && rect.x + rect.wide <= 100.001));
  const wide = (/** @type {string} */ address) => rects.filter((rect) => rect.piece?.address === address).reduce((sum, rect) => sum + rect.wide, 0);
  assert.ok(Math.abs(wide("a0") / wide("a600") - 1.5) < 1e-6);
  assert.ok(Math.abs(wide("b0") / (wide("a0") + wide("a600")) - 1) < 1e-6);
  const first = rects[0];
  assert.equal(pieceAt(rects, first.x + 1, first.y + 5)?.address, "a0");
});

test("arrow keys go through blocks, and to the next segment", () => {
  const pieces = [piece("a", 0, 1), piece("a", 1, 1), piece("b", 0, 1)];
  assert.equal(pieceBeside(pieces, null, "ArrowRight"), pieces[0]);
  assert.equal(pieceBeside(pieces, null, "End"), pieces[2]);
  assert.equal(pieceBeside(pieces, pieces[0], "ArrowRight"), pieces[1]);
  assert.equal(pieceBeside(pieces, pieces[0], "ArrowDown"), pieces[2]);
  assert.equal(pieceBeside(pieces, pieces[2], "ArrowUp"), pieces[1]);
  assert.equal(pieceBeside(pieces, pieces[2], "ArrowDown"), pieces[2]);
  assert.equal(pieceBeside([], null, "Home"), null);
});
