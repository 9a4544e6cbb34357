import assert from "node:assert/strict";
import test from "node:test";
import { marksOf } from "../../src/stepscope/web/ui/marks.js";

/** @param {any[]} data @param {string[]} keys */
function walked(data, keys) {
  const marks = marksOf(data);
  let at = marks.first;
  const said = [at?.words];
  for (const key of keys) {
    const next = at && marks.next(at, key);
    said.push(next?.words);
    at = next ?? at;
  }
  return said;
}

const STACK = ["a", "b"].map((name) => ({
  type: "bar",
  name,
  x: ["1", "2"],
  y: name === "a" ? [3, 0] : [5, 6],
  customdata: [["3 ms"], ["6 ms"]],
  hovertemplate: `step %{x}<br>${name} &lt;b&gt;: %{customdata[0]}<extra></extra>`,
}));

test("stacked bars: sideways to the next step, up the stack; what has no height is no mark", () => {
  assert.equal(marksOf(STACK).count, 3);
  assert.deepEqual(walked(STACK, ["ArrowUp", "ArrowRight", "ArrowUp", "Home"]), [
    "step 1; a <b>: 3 ms",
    "step 1; b <b>: 3 ms",
    "step 2; b <b>: 6 ms",
    undefined,
    "step 1; b <b>: 3 ms",
  ]);
});

test("flat bars go down, whatever curve each belongs to", () => {
  const data = [
    { type: "bar", orientation: "h", x: [9, 2], y: [0, 2], text: ["first", "third"] },
    { type: "bar", orientation: "h", x: [5], y: [1], text: ["second"] },
  ];
  assert.deepEqual(walked(data, ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"]), ["first", "second", "third", undefined, "second"]);
});

test("points of boxes by value; down to the next box", () => {
  const data = [
    { type: "box", x: [7, 3], y: ["r0", "r0"], text: ["long", "short"] },
    { type: "box", x: [4], y: ["r1"], text: ["other"] },
  ];
  assert.deepEqual(walked(data, ["ArrowRight", "ArrowLeft", "ArrowDown"]), ["short", "long", "short", "other"]);
});

test("cells of a heat map know their row and column", () => {
  const data = [{ type: "heatmap", x: ["1", "2"], y: ["r0", "r1"], z: [[1, 2], [3, 4]], text: [["00", "01"], ["10", "11"]] }];
  assert.deepEqual(walked(data, ["ArrowDown", "ArrowRight", "ArrowUp", "End"]), ["00", "10", "11", "01", "01"]);
  assert.deepEqual(marksOf(data).first?.point, [0, 0]);
});

test("curves: by place, with figures written as Plotly writes them; pages are a tenth", () => {
  const x = Array.from({ length: 100 }, (_, at) => at);
  const data = [{ type: "scatter", x, y: x.map((at) => at / 3), hovertemplate: "%{x:.1f} s: %{y:.2f}<extra>dev</extra>" }];
  assert.deepEqual(walked(data, ["PageDown", "End", "ArrowRight"]), ["0.0 s: 0.00, dev", "10.0 s: 3.33, dev", "99.0 s: 33.00, dev", undefined]);
});

test("a figure without marks has none", () => {
  assert.equal(marksOf([]).first, null);
  assert.equal(marksOf([{ type: "bar", x: [], y: [] }]).count, 0);
});
