// Lines: groups, folding, pinning, filtering, moving; what lies where; and the address of what is shown.

import assert from "node:assert/strict";
import { test } from "node:test";

import { greatest, valueAt } from "../../../src/stepscope/web/timeline/draw/counters.js";
import { heightOf, rowAt, tracksBetween } from "../../../src/stepscope/web/timeline/act/hits.js";
import { buildLines, clockShort, foldable, lineAt, noArrangement, nothingMatches, ROW, stuckHeight, stuckLines } from "../../../src/stepscope/web/timeline/lines.js";
import { place } from "../../../src/stepscope/web/timeline/act/tracks.js";
import { readPlace, writePlace } from "../../../src/stepscope/web/timeline/link.js";

const source = { id: "0", query: {}, shift: 0, rank: 0, layer: "events" };

function ranks(count = 1) {
  const tracks = (/** @type {number[]} */ ids) => ids.map((id) => ({ id, title: `thread ${id}`, detail: "", what: "host", row: id * 10, rows: id + 1, events: 5 }));
  const layout = {
    groups: [
      { id: "device 0", title: "GPU 0", what: "device", device: 0, tracks: tracks([0]) },
      { id: "process 1", title: "python", what: "host", device: null, tracks: tracks([1, 2, 3]) },
    ],
  };
  const counters = [{ id: "busy 0", title: "busy", unit: "share", group: "device 0", detail: "" }];
  const layers = [{ name: "steps", title: "Steps", source: { ...source, id: "0/steps" }, rows: [{ row: 0, title: "Steps", detail: "" }] }];
  return Array.from({ length: count }, (_, rank) => ({ rank, layout: rank ? null : layout, source, layers: rank ? [] : layers, notes: [], counters: rank ? [] : counters }));
}

const titles = (/** @type {any} */ built) => built.lines.map((/** @type {any} */ line) => line.title);

test("derived rows first, then groups with their counters and tracks", () => {
  const built = buildLines(ranks(), noArrangement());
  assert.deepEqual(titles(built), ["Steps", "GPU 0", "busy", "thread 0", "python", "thread 1", "thread 2", "thread 3"]);
  assert.equal(built.lines.at(-1).height, 4 * ROW + 5);
  assert.equal(built.height, built.lines.at(-1).y + built.lines.at(-1).height);
});

test("a folded track has one row, a folded group a strip of its first track", () => {
  const state = { ...noArrangement(), folded: new Set(["r0/t3", "r0/g/device 0"]) };
  const built = buildLines(ranks(), state);
  assert.deepEqual(titles(built), ["Steps", "GPU 0", "python", "thread 1", "thread 2", "thread 3"]);
  assert.equal(built.lines.at(-1).rows, 1);
  assert.equal(built.lines[1].rows, 1);
  assert.equal(built.lines[1].source, source);
});

test("pinned tracks come first, once", () => {
  const built = buildLines(ranks(), { ...noArrangement(), pinned: ["r0/t2", "r0/t99"] });
  assert.deepEqual(titles(built).slice(0, 2), ["thread 2", "Steps"]);
  assert.equal(titles(built).filter((/** @type {string} */ title) => title === "thread 2").length, 1);
});

test("the filter keeps tracks and the headings above them", () => {
  assert.deepEqual(titles(buildLines(ranks(), { ...noArrangement(), filter: "THREAD 2" })), ["python", "thread 2"]);
  assert.deepEqual(titles(buildLines(ranks(), { ...noArrangement(), filter: "nothing" })), []);
});

test("the filter keeps the headings of ranks, and finds what folded groups hold", () => {
  const state = { ...noArrangement(), filter: "thread 2", folded: new Set(["r0/g/process 1"]) };
  assert.deepEqual(titles(buildLines(ranks(2), state)), ["Rank 0", "python", "Rank 1"]);
  const folded = buildLines(ranks(2), { ...noArrangement(), filter: "thread 2", folded: new Set(["r0"]) });
  assert.deepEqual(titles(folded), ["Rank 0", "Rank 1"]);
  assert.equal(nothingMatches(folded.lines, "thread 2"), true);
  assert.equal(nothingMatches(folded.lines, " "), false);
  assert.equal(nothingMatches(buildLines(ranks(), state).lines, "thread 2"), false);
});

test("all folded, each rank is its derived rows and one strip a group", () => {
  const folded = new Set(foldable(ranks(2), noArrangement()));
  assert.deepEqual(titles(buildLines(ranks(2), { ...noArrangement(), folded })), ["Rank 0", "Steps", "GPU 0", "python", "Rank 1"]);
  assert.deepEqual(foldable(ranks(2), { ...noArrangement(), folded }), [...folded]);
});

test("how well clocks agree is told in words", () => {
  assert.equal(clockShort(3, { aligned_by: "collectives", residual_ns: 64_900, collectives: 20, offset_ns: 0, drift_ppm: 0 }), "Rank 3 aligned to ±64.9 µs (20 collectives)");
});

test("tracks can be put in another order", () => {
  const order = new Map([["r0/g/process 1", ["r0/t3", "r0/t1", "r0/t2"]]]);
  assert.deepEqual(titles(buildLines(ranks(), { ...noArrangement(), order })).slice(-3), ["thread 3", "thread 1", "thread 2"]);
});

test("with several ranks each has a heading, and those not read yet are folded", () => {
  const built = buildLines(ranks(2), noArrangement());
  assert.deepEqual(titles(built).filter((/** @type {string} */ title) => title.startsWith("Rank")), ["Rank 0", "Rank 1"]);
  assert.equal(built.lines.at(-1).folded, true);
});

test("a height leads to a line and a row, and back", () => {
  const { lines } = buildLines(ranks(), noArrangement());
  const place = heightOf(lines, "0", 22);
  assert.equal(place.line.title, "thread 2");
  assert.deepEqual(rowAt(lines, place.y + 3).row, 22);
  assert.equal(rowAt(lines, 1e6), null);
  assert.equal(lines[lineAt(lines, lines[4].y)].title, lines[4].title);
  assert.equal(heightOf(lines, "7", 0), null);
  assert.equal(rowAt(lines, lines.find((line) => line.kind === "counter").y + 5).row, null);
});

test("a range has the tracks that it touches", () => {
  const { lines } = buildLines(ranks(), noArrangement());
  assert.deepEqual(tracksBetween(lines, -1, Infinity).map((each) => each.track), [0, 1, 2, 3]);
  const second = lines.find((line) => line.track === 2);
  assert.deepEqual(tracksBetween(lines, second.y + 1, second.y + 2), [{ rank: 0, track: 2 }]);
  const folded = buildLines(ranks(), { ...noArrangement(), folded: new Set(["r0/g/process 1"]) }).lines;
  assert.deepEqual(tracksBetween(folded, -1, Infinity).map((each) => each.track), [0, 1, 2, 3]);
});

test("a counter's value is that of the last sample before", () => {
  const tile = { begin: 100, step: 10, places: Int32Array.of(-1, 2, 5), lows: Float32Array.of(1, 2, 3), highs: Float32Array.of(1, 8, 3), lasts: Float32Array.of(1, 4, 3) };
  assert.equal(valueAt([tile], 101), 1);
  assert.equal(valueAt([tile], 125), 4);
  assert.equal(valueAt([tile], 1000), 3);
  assert.equal(valueAt([], 5), null);
  assert.equal(greatest([tile], 1), 8);
});

test("a link brings back what it was made of", () => {
  const place = {
    start: 1694128201421058123n, end: 1694128201421058124n, event: 12, of: null, events: "", facts: "", layer: "account", from: null, to: null, tracks: [], rank: null, open: [3, 1],
    pinned: ["r0/t2", "r0/c/busy 0", "r0/c/temperature, 100 %2C"], folded: ["r0/g/device 0"], filter: "main", q: "gemm & co",
    marks: [{ start: -5n, end: 1694128201421058123n, kept: true }, { start: 7n, end: 7n, kept: false }],
    order: new Map([["r0/g/process 1, main", ["r0/t3", "r0/c/busy, 1", "r0/t1"]], ["r1/g/device 0", ["r1/t0"]]]),
  };
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(writePlace(place, false))) if (value !== null && value !== undefined) params.set(name, String(value));
  assert.deepEqual(readPlace(new URLSearchParams(params.toString())), place);
  assert.equal(writePlace(place, true).start, null);
});

test("links with nonsense in them are read as far as they make sense", () => {
  const place = readPlace(new URLSearchParams("start=x&end=9e9&event=-&layer=%3Cb%3E&pinned=,,a&of=3&marks=1.2,x.3,4,5.6k7&order=r0/t1,r0/g/a"));
  assert.deepEqual([place.start, place.end, place.event, place.layer, place.pinned, place.of], [null, null, null, "events", ["a"], 3]);
  assert.deepEqual(place.marks, [{ start: 1n, end: 2n, kept: false }]);
  assert.deepEqual([...place.order], [["r0/g/a", []]]);
});

test("a heading stays at the top as long as anything below it is in view, and the next one pushes it out", () => {
  const { lines } = buildLines(ranks(2), noArrangement());
  const python = lines.find((/** @type {any} */ line) => line.title === "python");
  const shown = (/** @type {number} */ scroll) => stuckLines(lines, scroll).map(({ line, y }) => [line.title, y]);
  assert.deepEqual(shown(0), []);
  assert.deepEqual(shown(10), [["Rank 0", 0]]);
  assert.deepEqual(shown(40), [["GPU 0", 28], ["Rank 0", 0]]);
  assert.deepEqual(shown(python.y), [["python", 28], ["Rank 0", 0]]);
  assert.equal(stuckHeight(stuckLines(lines, python.y)), 52);
  const last = lines.at(-1);
  assert.deepEqual(shown(last.y - 30), [["python", 6], ["Rank 0", 0]]);
  assert.deepEqual(shown(last.y - 20), [["Rank 0", -8]]);
  assert.deepEqual(shown(last.y + 5), []);
});

test("the words of a track stay in view while its rows are", () => {
  const line = { kind: "track", y: 100, height: 77 };
  assert.equal(place(/** @type {any} */ (line), undefined, 90, 90).paddingTop, "");
  assert.equal(place(/** @type {any} */ (line), undefined, 100, 124).paddingTop, "26px");
  assert.equal(place(/** @type {any} */ (line), undefined, 160, 184).paddingTop, "56px");
  assert.equal(place(/** @type {any} */ ({ ...line, kind: "group" }), 28, 160, 184).top, "188px");
});

test("a folded device shows all its streams, a folded process its first thread", () => {
  const [rank] = ranks();
  const [device] = /** @type {any} */ (rank.layout).groups;
  const folded = new Set(["r0/g/device 0", "r0/g/process 1"]);
  const groups = [{ ...device, merged: 3 }, .../** @type {any} */ (rank.layout).groups.slice(1)];
  const { lines } = buildLines([/** @type {any} */ ({ ...rank, layout: { groups } })], { ...noArrangement(), folded });
  const [gpu, python] = lines.filter((/** @type {any} */ line) => line.kind === "group");
  assert.deepEqual([gpu.row, gpu.source.id, gpu.source.layer, gpu.source.query], [3, "0/merged", "events", { layer: "merged" }]);
  assert.equal(buildLines([/** @type {any} */ ({ ...rank, layout: { groups } })], { ...noArrangement(), folded }).lines[1].source, gpu.source);
  assert.deepEqual([python.row, python.source], [10, source]);
  assert.equal(heightOf(lines, "0", 0, { rank: 0, track: 0 })?.line, gpu);
  assert.equal(heightOf(lines, "0", 0, { rank: 1, track: 0 }), null);
});
