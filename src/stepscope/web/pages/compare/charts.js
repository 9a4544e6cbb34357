// Charts of two runs: what a step consists of, and how long each one took.

import { figure, timeAxis } from "../../ui/figure.js";
import { duration } from "../../text/format.js";
import { empty } from "../../shell/notice.js";
import { part } from "../../text/parts.js";

/** @typedef {import("./differences.js").Row} Row */

/** @param {Row[]} found */
export function parts(found) {
  const all = [...found].sort(
    (a, b) =>
      Number(part(b.name).isBusy) - Number(part(a.name).isBusy) ||
      Math.max(b.a ?? 0, b.b ?? 0) - Math.max(a.a ?? 0, a.b ?? 0),
  );
  if (!all.length) return empty("No account.", "Neither run could be accounted for.");
  const { scale, unit } = timeAxis(
    Math.max(
      ...["a", "b"].map((side) => all.reduce((sum, row) => sum + Number(row[/** @type {"a" | "b"} */ (side)] ?? 0), 0)),
      1,
    ),
  );
  return figure({
    title: "Where the time of a step goes",
    unit: `${unit} per step`,
    help: "report/breakdown",
    height: 210,
    draw: (colour) => ({
      data: all.map((row) => ({
        type: "bar",
        orientation: "h",
        name: part(row.name).title,
        y: ["A", "B"],
        x: [(row.a ?? 0) / scale, (row.b ?? 0) / scale],
        marker: { color: colour(`p-${row.name}`) },
        text: [row.a, row.b].map((value) => `${part(row.name).title}: ${value === null ? "nothing" : duration(value)}`),
        hoverinfo: "text",
        textposition: "none",
      })),
      layout: {
        barmode: "stack",
        yaxis: { autorange: "reversed", type: "category" },
        xaxis: { title: { text: `time per step [${unit}]` } },
        margin: { l: 30, r: 16, t: 46, b: 44 },
      },
    }),
  });
}

/** @typedef {{ ns: number, slowest_ns: number, slowest: number, ranks: number }} StepOfAll */

/** One line a side, the mean over its ranks. @param {{ a: StepOfAll[], b: StepOfAll[] }} both */
export function steps(both) {
  const all = [...both.a, ...both.b];
  if (!all.length) return empty("No steps.", "Neither run has steps.");
  const { scale, unit } = timeAxis(Math.max(...all.map((each) => each.ns)));
  const words = (/** @type {string} */ side, /** @type {StepOfAll} */ each, /** @type {number} */ at) =>
    `${side}, step ${at + 1}: ${duration(each.ns)}${each.ranks > 1 ? `, mean of ${each.ranks} ranks; rank ${each.slowest} takes ${duration(each.slowest_ns)}` : ""}`;
  return figure({
    title: all.some((each) => each.ranks > 1) ? "Step times of both, mean over ranks" : "Step times of both",
    unit,
    help: "report/steps",
    height: 230,
    draw: (colour) => ({
      data: /** @type {["a" | "b", string, string][]} */ ([
        ["a", "A", "p-device_gap"],
        ["b", "B", "p-compute"],
      ]).map(([side, name, tint]) => ({
        type: "scatter",
        mode: "lines+markers",
        name,
        x: both[side].map((_, at) => at + 1),
        y: both[side].map((each) => each.ns / scale),
        line: { color: colour(tint), width: 1.5 },
        marker: { size: 5 },
        text: both[side].map((each, at) => words(name, each, at)),
        hoverinfo: "text",
      })),
      layout: {
        xaxis: {
          title: { text: "step, counted from 1" },
          tick0: 1,
          dtick: Math.max(1, Math.ceil(Math.max(both.a.length, both.b.length) / 15)),
        },
        yaxis: { title: { text: `time [${unit}]` }, rangemode: "tozero" },
      },
    }),
  });
}
