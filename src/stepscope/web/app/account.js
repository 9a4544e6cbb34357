// The account of a step: as one bar, as bars over the steps, and as a list of parts with the names behind them.

import { h } from "./dom.js";
import { figure, timeAxis } from "./figure.js";
import { count, duration, share } from "./format.js";
import { helpLink } from "./help.js";
import { shortName } from "./names.js";
import { inOrder, part } from "./parts.js";
import { table } from "./tables.js";

const LETTER = 0.0075; // of the bar, where the page is as narrow as it may be
const PALE = new Set(["python", "host_collective", "profiler", "unrecorded"]); // white words on these cannot be read
const BARS = 400;

/** Steps of each rank's critical device, or of one rank's. @param {import("../types").Report} report @param {number | null} [rank] */
export function ownRows(report, rank = null) {
  const devices = report.steps.critical_devices;
  return report.steps.rows.filter(
    (row) => (rank === null || row.rank === rank) && (devices[String(row.rank)] ?? row.device) === row.device,
  );
}

/** What the account is over. @param {import("../types").Report} report */
export function basis(report) {
  if (!report.steps.rows.length) return "the whole recording, since no steps were found";
  const ranks = report.profile.ranks.length;
  return `per step, the mean of ${count(Math.max(1, ownRows(report).length))}${ranks > 1 ? ` on ${count(ranks)} ranks` : ""}`;
}

/** @param {import("../types").Report} report */
export function oneBar(report) {
  const rows = inOrder(report.breakdown).filter((row) => row.ns > 0);
  const steps = Math.max(1, ownRows(report).length);
  const pieces = rows.map((row) =>
    h(
      "i",
      {
        class: PALE.has(row.part) ? "pale" : null,
        style: { flex: `${row.ns} 1 0`, background: `var(--p-${row.part})` },
        "data-tip": `${part(row.part).title}: ${share(row.share)}, ${duration(row.ns / steps)} a step\n${part(row.part).meaning}`,
      },
      label(row),
    ),
  );
  return h(
    "figure",
    { class: "figure" },
    h(
      "header",
      {},
      h("h3", {}, "Where the time of a step goes"),
      h("small", {}, `share of time, ${basis(report)}`),
      helpLink("report/breakdown"),
    ),
    h(
      "div",
      {
        class: "onebar",
        role: "img",
        "aria-label": rows.map((row) => `${part(row.part).title} ${share(row.share)}`).join(", "),
      },
      pieces,
    ),
    h(
      "ul",
      { class: "legend" },
      rows.map((row) =>
        h(
          "li",
          { "data-tip": part(row.part).meaning },
          swatch(row.part),
          `${part(row.part).title} ${share(row.share)}`,
        ),
      ),
    ),
  );
}

/** What stands in a piece of the bar, if there is room for it. @param {import("../types").BreakdownRow} row */
function label(row) {
  const words = `${part(row.part).title} ${share(row.share)}`;
  return row.share >= LETTER * (words.length + 1) ? words : "";
}

/** @param {string} name */
export function swatch(name) {
  return h("i", { class: "swatch", style: { background: `var(--p-${name})` } });
}

/**
 * Stacked bars over the steps; a click opens the step in the trace.
 * @param {import("../types").Report} report
 * @param {import("../types").Context} context
 * @param {{ rank: number | null, height?: number, title?: string }} options
 */
export function stepBars(report, context, options) {
  const all = ownRows(report, options.rank);
  const rows = all.slice(0, BARS);
  const several = options.rank === null && report.profile.ranks.length > 1;
  const { scale, unit } = timeAxis(Math.max(...rows.map((row) => row.duration_ns), 1));
  const parts = inOrder(report.breakdown)
    .map((row) => row.part)
    .filter((name) => rows.some((row) => row.parts[name]));
  const labels = rows.map((row) => (several ? `${row.step} (rank ${row.rank})` : String(row.step)));
  const note = [
    all.length > rows.length ? `The first ${rows.length} of ${count(all.length)} steps; the table has all.` : "",
    "Click a bar to see the step in the trace.",
  ]
    .filter(Boolean)
    .join(" ");
  return figure({
    title: options.title ?? "The account, step by step",
    unit: `${unit} per step`,
    help: "report/breakdown",
    height: options.height ?? 290,
    note,
    draw: (colour) => ({
      data: parts.map((name) => ({
        type: "bar",
        name: part(name).title,
        x: labels,
        y: rows.map((row) => (row.parts[name] ?? 0) / scale),
        marker: { color: colour(`p-${name}`), opacity: rows.map((row) => (row.partial ? 0.5 : 1)) },
        customdata: rows.map((row) => [
          duration(row.parts[name] ?? 0),
          duration(row.duration_ns),
          share((row.parts[name] ?? 0) / Math.max(1, row.duration_ns)),
          row.partial ? ", partial" : row.outlier ? ", outlier" : "",
        ]),
        hovertemplate: `step %{x}%{customdata[3]}<br>${part(name).title}: %{customdata[0]} (%{customdata[2]})<br>step: %{customdata[1]}<extra></extra>`,
      })),
      layout: {
        barmode: "stack",
        bargap: rows.length > 60 ? 0.05 : 0.25,
        xaxis: { title: { text: "step" }, type: "category", nticks: 20 },
        yaxis: { title: { text: `time [${unit}]` } },
        shapes: report.steps.median_ns
          ? [
              {
                type: "line",
                xref: "paper",
                x0: 0,
                x1: 1,
                y0: report.steps.median_ns / scale,
                y1: report.steps.median_ns / scale,
                line: { color: colour("ink"), width: 1, dash: "dash" },
              },
            ]
          : [],
      },
    }),
    onClick: (event) => {
      openStep(context, rows[event.points[0].pointIndex]);
    },
  });
}

/** @param {import("../types").Context} context @param {import("../types").StepRow} row */
export function openStep(context, row) {
  context.go("trace", { start: row.start_ns, end: row.start_ns + row.duration_ns, rank: row.rank });
}

/** All parts, busy ones first; the one that costs most is open. @param {import("../types").Report} report */
export function partList(report) {
  const rows = inOrder(report.breakdown);
  const steps = Math.max(1, ownRows(report).length);
  const worst = rows.find((row) => !part(row.part).isBusy && row.share >= 0.05);
  return h(
    "div",
    { class: "parts" },
    rows.map((row) => onePart(row, steps, row === worst)),
  );
}

/** @param {import("../types").BreakdownRow} row @param {number} steps @param {boolean} isOpen */
function onePart(row, steps, isOpen) {
  const names = [...new Set(row.names.map((each) => shortName(each.name)))].slice(0, 3).join(", ");
  const rows = row.names.map((each) => ({ ...each, share: row.ns ? each.ns / row.ns : 0 }));
  return h(
    "details",
    { open: isOpen },
    h(
      "summary",
      {},
      swatch(row.part),
      h("b", {}, part(row.part).title),
      h("span", { class: "n" }, share(row.share)),
      h("span", { class: "n" }, duration(row.ns / steps)),
      h(
        "span",
        { class: "gauge" },
        h("i", { style: { width: `${100 * row.share}%`, background: `var(--p-${row.part})` } }),
      ),
      h("span", { class: "names" }, names),
    ),
    h("p", {}, `${part(row.part).meaning} ${share(row.named_share)} of this time has a name.`),
    rows.length ? table({ columns: NAMES, rows, total: row.names_total }) : null,
  );
}

const NAMES = [
  { key: "name", title: "name", kind: "name" },
  { key: "detail", title: "at or in", kind: "name" },
  { key: "thread", title: "thread" },
  { key: "ns", title: "time", kind: "ns" },
  { key: "share", title: "of the part", kind: "share", bar: true },
];
