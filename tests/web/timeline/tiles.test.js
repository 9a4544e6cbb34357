// Tiles: their bytes, what is kept, what is asked for, and what is shown while they are on their way.

import assert from "node:assert/strict";
import { test } from "node:test";

import { paintRow, Wide } from "../../../src/stepscope/web/timeline/draw/bitmap.js";
import { blocksFor } from "../../../src/stepscope/web/timeline/net/blocks.js";
import { decodeTile, tilesOf, tileSpan, unitOf } from "../../../src/stepscope/web/timeline/net/decode.js";
import { Labels } from "../../../src/stepscope/web/timeline/draw/labels.js";
import { Tiles } from "../../../src/stepscope/web/timeline/net/tiles.js";

globalThis.window ??= globalThis;

const source = { id: "0", query: {}, shift: 0, rank: 0, layer: "events" };

/** @param {Record<number, number[][]>} rows items as start, duration, id, label, count */
function bytes(rows) {
  const items = Object.values(rows).flat();
  const heads = Object.entries(rows).flatMap(([row, own]) => [Number(row), own.length]);
  const numbers = [1, Object.keys(rows).length, ...heads, ...[0, 1, 2, 3, 4].flatMap((column) => items.map((item) => item[column]))];
  return Int32Array.from(numbers).buffer;
}

const PATIENCE_MS = 120_000; // a machine that does much else at the same time
const soon = () => new Promise((done) => setTimeout(done, 5));

test("a tile is read as it was written", () => {
  const rows = decodeTile(bytes({ 3: [[-5, 7, 11, 13, 1], [4, 0, 12, 14, 9]], 4: [] }));
  assert.deepEqual([...rows.keys()], [3, 4]);
  assert.deepEqual([...rows.get(3).starts], [-5, 4]);
  assert.deepEqual([...rows.get(3).counts], [1, 9]);
  assert.equal(rows.get(4).ids.length, 0);
});

test("bytes that are no tile are refused", () => {
  assert.throws(() => decodeTile(Int32Array.from([2, 0]).buffer), /version 2/);
  assert.throws(() => decodeTile(bytes({ 3: [[1, 1, 1, 1, 1]] }).slice(0, -4)), /shorter/);
});

test("the tiles of a view", () => {
  assert.deepEqual(tilesOf(0, 1024, 0), { first: 0, last: 0 });
  assert.deepEqual(tilesOf(-1, 1025, 0), { first: -1, last: 1 });
  assert.equal(tileSpan(3), 8192);
  assert.deepEqual([unitOf(0), unitOf(8), unitOf(9), unitOf(20)], [1, 1, 2, 4096]);
});

/** Tiles whose answers wait until they are let go. */
function held(blocks) {
  const asked = [];
  const waiting = [];
  const answer = (...wish) => new Promise((done) => { asked.push(wish); waiting.push(() => done(bytes(blocks))); });
  const tiles = new Tiles(answer, () => {}, () => {});
  return { tiles, asked, letGo: () => waiting.shift()() };
}

/** Until it is so. */
async function until(question) {
  const end = performance.now() + PATIENCE_MS;
  while (!question()) {
    assert.ok(performance.now() < end, `never true: ${question}`);
    await soon();
  }
}

test("wishes of one place go out together, one request after the other", async () => {
  const { tiles, asked, letGo } = held({ 0: [], 8: [] });
  const wishes = [0, 1, 2, 3, 4, 5].flatMap((index) => [0, 1].map((block) => ({ source, level: 5, index, block })));
  tiles.want(wishes);
  assert.equal(asked.length, 0, "a frame sends nothing itself");
  await until(() => asked.length);
  assert.deepEqual(asked[0].slice(1), [5, 0, [0, 1]]);
  tiles.want(wishes);
  for (let turn = 1; turn <= 6; turn += 1) {
    letGo();
    await until(() => asked.length > turn || !tiles.running);
  }
  assert.equal(asked.length, 6, "nothing is asked for twice");
  assert.ok(tiles.get(source, 5, 3, 1));
});

test("two requests go to a server that is far away", async () => {
  const { tiles, asked } = held({});
  tiles.latencies.push(400);
  tiles.want([0, 1, 2].map((index) => ({ source, level: 5, index, block: 0 })));
  await until(() => asked.length);
  assert.equal(tiles.running, 2);
  tiles.stop();
});

test("a request that takes long does not hold up the next", async () => {
  const { tiles, asked } = held({});
  tiles.want([0, 1, 2].map((index) => ({ source, level: 5, index, block: 0 })));
  await until(() => asked.length === 2);
  assert.equal(tiles.running, 2);
  tiles.stop();
});

test("wishes that are no longer wanted are not sent", async () => {
  const { tiles, asked, letGo } = held({});
  tiles.want([0, 1, 2, 3, 4, 5].map((index) => ({ source, level: 5, index, block: 0 })));
  await until(() => asked.length);
  tiles.want([{ source, level: 5, index: 9, block: 0 }]);
  letGo();
  await until(() => asked.some((wish) => wish[2] === 9));
  assert.ok(asked.length <= 3, "one more went out if the machine stood still meanwhile");
  tiles.stop();
});

test("what was used longest ago goes first", async () => {
  const tiles = new Tiles(async () => bytes({ 0: [] }), () => {}, () => {}, 2000);
  for (const index of [0, 1, 2]) {
    tiles.want([{ source, level: 1, index, block: 0 }]);
    await soon();
    tiles.get(source, 1, 0, 0);
  }
  tiles.want([{ source, level: 1, index: 3, block: 0 }]);
  await soon();
  assert.ok(tiles.get(source, 1, 0, 0));
  assert.ok(!tiles.get(source, 1, 1, 0));
  assert.ok(tiles.bytes <= 2000);
});

test("a failure is told, and not repeated at once", async () => {
  let asked = 0;
  const told = [];
  const tiles = new Tiles(async () => { asked += 1; throw new Error("gone"); }, () => {}, (error) => told.push(error.message));
  const wish = [{ source, level: 1, index: 0, block: 0 }];
  tiles.want(wish);
  await soon();
  tiles.want(wish);
  await soon();
  assert.equal(asked, 1);
  assert.deepEqual(told, ["gone"]);
});

test("guesses that fail, or that nobody waits for any more, do not go on for ever", async () => {
  let asked = 0;
  const tiles = new Tiles(async () => { asked += 1; throw new Error("gone"); }, () => {}, () => {});
  tiles.guesses = [0, 1, 2].map((index) => ({ source, level: 1, index, block: 0 }));
  tiles.guess();
  await soon();
  assert.equal(asked, 1);
  tiles.pausedUntil = 0;
  tiles.stop();
  tiles.guess();
  tiles.want([{ source, level: 1, index: 5, block: 0 }]);
  await soon();
  assert.equal(asked, 1);
});

test("while a tile is on its way a coarser one stands in, else finer ones", () => {
  const tiles = new Tiles(async () => bytes({}), () => {}, () => {});
  const coarse = { begin: 0, unit: 1, end: tileSpan(6), rows: [], bytes: 0 };
  tiles.blocks.set("0:6:0:0", coarse);
  const wishes = [];
  const found = blocksFor(tiles, source, 0, 0, tileSpan(5) * 1.5, 5, wishes);
  assert.deepEqual(found.map((each) => each.block), [coarse, coarse]);
  assert.deepEqual(found.map((each) => [each.start, each.end]), [[0, tileSpan(5)], [tileSpan(5), 2 * tileSpan(5)]]);
  assert.equal(wishes.length, 2);
  tiles.blocks.clear();
  const fine = { begin: 0, unit: 1, end: tileSpan(4), rows: [], bytes: 0 };
  tiles.blocks.set("0:4:1:0", fine);
  assert.deepEqual(blocksFor(tiles, source, 0, 0, tileSpan(5), 5, []).map((each) => each.start), [tileSpan(4)]);
});

/** @param {number[][]} items start, duration, label */
function painted(items, window = {}) {
  const row = {
    starts: Int32Array.from(items, (item) => item[0]), durs: Uint32Array.from(items, (item) => item[1]),
    labels: Uint32Array.from(items, (item) => item[2]), ids: new Uint32Array(items.length), counts: new Uint32Array(items.length),
  };
  const pixels = new Uint32Array(30);
  const wide = new Wide();
  const block = { begin: 0, unit: 1, end: 1000, rows: [], bytes: 0 };
  const view = { start: 0, scale: 10, from: 0, to: 30, width: 30, labelFrom: 10, ...window };
  paintRow(pixels, 0, row, block, view, Uint32Array.of(1, 2), Uint32Array.of(8, 9), window.lit ?? null, wide, 0, 0);
  return { line: [...pixels].join(""), wide };
}

test("slices become pixels: at least one each, with a gap behind wide ones", () => {
  assert.equal(painted([[0, 50, 0], [100, 1, 1 << 24], [200, 60, 0]]).line, "111100000020000000001111100000");
});

test("only what is in view is painted, and only wide slices get a name", () => {
  const { line, wide } = painted([[-500, 2000, 5]]);
  assert.equal(line, "1".repeat(30));
  assert.equal(wide.count, 1);
  assert.deepEqual([wide.x[0], wide.width[0], wide.label[0]], [0, 30, 5]);
  assert.equal(painted([[0, 90, 0]]).wide.count, 0);
  assert.equal(painted([[0, 300, 0]], { from: 10 }).wide.count, 0, "its name stands in the piece before");
  assert.equal(painted([[5000, 10, 0], [-50, 10, 0]]).line, "0".repeat(30));
});

test("in motion only the widest get a name, also where many are of the same width", () => {
  const wide = new Wide();
  for (const width of [40, 70, 40, 90, 40, 30]) wide.add(0, width, 0, 0, 0);
  assert.deepEqual(wide.widest(4), { above: 40, alike: 2 }, "two are wider, and two of the three of this width have room");
  assert.deepEqual(wide.widest(2), { above: 70, alike: 1 });
  for (const most of [6, 7, Infinity]) assert.ok(wide.widest(most).above < 0, "all of them");
});

test("while searching other names are dimmed", () => {
  assert.equal(painted([[0, 10, 1], [100, 10, 2]], { lit: Uint8Array.of(0, 1) }).line, "100000000080000000000000000000");
});

test("names are cut to the room there is", () => {
  const labels = new Labels((text) => text.length * 6);
  assert.equal(labels.fit("aten::mm", 100), "aten::mm");
  const cut = labels.fit("aten::convolution_backward", 60);
  assert.ok(cut.startsWith("aten::") && cut.endsWith("…") && cut.length * 6 <= 60);
  assert.equal(labels.fit("aten::mm", 5), "");
});
