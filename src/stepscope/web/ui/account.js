// The account of a step: as one bar, as bars over the steps, and as a list of parts with the names behind them.

import { isLeft } from "../shell/api.js";
import { fill, h } from "./dom.js";
import { eventsLink, stepLink } from "./events.js";
import { figure, timeAxis } from "./figure.js";
import { count, duration, share } from "../text/format.js";
import { helpLink } from "../shell/help.js";
import { shortName } from "../text/names.js";
import { failure } from "../shell/notice.js";
import { follow } from "../shell/place.js";
import { chargedDevice } from "../text/devices.js";
import { inOrder, part, placed } from "../text/parts.js";
import { table } from "./tables.js";

const LETTER = 0.0075; // of the bar, where the page is as narrow as it may be
// White words on these cannot be read.
export const PALE = new Set(["copy", "input", "python", "host_collective", "io", "device_gap", "profiler", "unexplained"]);
const BARS = 400;
const NAMED_RANKS = 12; // more have no room for more than their number
const MOST_NAMES = 1000; // as many as the server sends at once

/** Steps of each rank's critical device, or of one rank's. @param {import("../types").Report} report @param {number | null} [rank] */
export function ownRows(report, rank = null) {
  const devices = report.steps.critical_devices;
  return report.steps.rows.filter(
    (row) => (rank === null || row.rank === rank) && (devices[String(row.rank)] ?? row.device) === row.device,
  );
}

/** How many steps sums of the report are over; null where they are over the whole recording. @param {import("../types").Report} report @param {number | null} [rank] */
export function stepsOf(report, rank = null) {
  return report.steps.source === "whole" || report.steps.source === "none" ? null : ownRows(report, rank).length || null;
}

/** What the account is over; of several devices in a process it is of the one that decides. @param {import("../types").Report} report */
export function basis(report) {
  return [stepsInWords(report), chargedDevice(report)].filter(Boolean).join(", ");
}

/** @param {import("../types").Report} report */
function stepsInWords(report) {
  if (!report.steps.rows.length || report.steps.source === "whole")
    return `the whole recording${report.steps.confidence === "high" ? "" : ", since no steps were found"}`;
  const ranks = report.profile.ranks.length;
  const all = Math.max(1, ownRows(report).length);
  const steps = ranks && all % ranks === 0 ? all / ranks : all; // equally many on each
  return `${steps === 1 ? "one step" : `mean of ${count(steps)} steps`}${ranks > 1 ? ` on ${count(ranks)} ranks` : ""}`;
}

/** @param {import("../types").Report} report @param {import("../types").Context} context */
export function oneBar(report, context) {
  const rows = inOrder(report.breakdown).filter((row) => row.ns > 0);
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
    bar(rows, Math.max(1, ownRows(report).length), context),
  );
}

/** Parts beside each other, each as long as it takes, and what each is; all lead to their events. @param {import("../types").BreakdownRow[]} rows @param {number} steps @param {import("../types").Context} context */
export function bar(rows, steps, context) {
  const whole = rows.reduce((sum, row) => sum + row.share, 0) || 1;
  const pieces = rows.map((row) =>
    h(
      "i",
      {
        class: `leads${PALE.has(row.part) ? " pale" : row.part === "unrecorded" ? " inked" : ""}`,
        style: { flex: `${row.ns} 1 0`, background: `var(--p-${row.part})` },
        "data-tip": `${part(row.part).title}: ${share(row.share)}, ${duration(row.ns / steps)} a step\n${part(row.part).meaning}`,
        onclick: (/** @type {MouseEvent} */ event) => follow(eventsLink(context, "account", row.part), event),
      },
      label(row, whole),
    ),
  );
  const words = rows.map((row) => `${part(row.part).title} ${share(row.share)}`);
  return [
    h("div", { class: "onebar", role: "img", "aria-label": words.join(", ") }, pieces),
    h(
      "ul",
      { class: "legend" },
      rows.map((row, at) => h("li", { "data-tip": part(row.part).meaning }, h("a", { href: eventsLink(context, "account", row.part) }, swatch(row.part), words[at]))),
    ),
  ];
}

/** The text in a piece of the bar, if there is room for it. @param {import("../types").BreakdownRow} row @param {number} whole */
function label(row, whole) {
  const words = `${part(row.part).title} ${share(row.share)}`;
  return row.share / whole >= LETTER * (words.length + 1) ? words : "";
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
    "Click a bar to see what the step did, in the trace.",
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
        xaxis: several ? rankAxis(rows, labels) : { title: { text: "step" }, type: "category", nticks: 20 },
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

/** One mark for each rank, in the middle of its steps. @param {import("../types").StepRow[]} rows @param {string[]} labels */
function rankAxis(rows, labels) {
  const ranks = [...new Set(rows.map((row) => row.rank))];
  const middle = (/** @type {number} */ rank) => {
    const first = rows.findIndex((row) => row.rank === rank);
    const many = rows.filter((row) => row.rank === rank).length;
    return labels[first + Math.floor((many - 1) / 2)];
  };
  return {
    title: { text: "the steps of each rank" },
    type: "category",
    tickvals: ranks.map(middle),
    ticktext: ranks.map((rank) => (ranks.length > NAMED_RANKS ? String(rank) : `rank ${rank}`)),
  };
}

/** What the step did, in the trace. @param {import("../types").Context} context @param {import("../types").StepRow} row */
export function openStep(context, row) {
  follow(stepLink(context, row));
}

/** All parts, busy ones first; the one that costs most is open. @param {import("../types").Report} report @param {import("../types").Context} context */
export function partList(report, context) {
  const rows = inOrder(report.breakdown);
  const steps = Math.max(1, ownRows(report).length);
  const worst = rows.find((row) => !part(row.part).isBusy && row.share >= 0.05);
  return h(
    "div",
    { class: "parts" },
    rows.map((row) => onePart(row, steps, row === worst, context)),
  );
}

/** @param {import("../types").BreakdownRow} row @param {number} steps @param {boolean} isOpen @param {import("../types").Context} context */
function onePart(row, steps, isOpen, context) {
  const names = [...new Set(row.names.map((each) => placed(shortName(each.name), each.place)))].slice(0, 3).join(", ");
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
      h("span", { class: "names", "data-tip": names || null }, names),
    ),
    h("p", {}, `${part(row.part).meaning} ${aboutNames(row)} `, h("a", { href: eventsLink(context, "account", row.part) }, "see it in the trace")),
    row.names.length ? namesOf(row, steps, context) : null,
  );
}

/** How much of the part its names say. @param {import("../types").BreakdownRow} row */
function aboutNames(row) {
  if (row.end_ns || row.names.some((each) => each.place)) return "The names only say where it is.";
  return `${share(row.named_share)} of this time has a name.`;
}

/** What the part's time is charged to: the longest, and the rest on demand. @param {import("../types").BreakdownRow} row @param {number} steps @param {import("../types").Context} context */
function namesOf(row, steps, context) {
  /** @param {{ ns: number }[]} names */
  const written = (names) =>
    names.map((each) => ({ ...each, ns: each.ns / steps, share: row.ns ? each.ns / row.ns : 0 }));
  const to = (/** @type {Record<string, any>} */ each) => eventsLink(context, "account", row.part, { name: each.name, thread: each.thread });
  const room = h("div", {}, table({ columns: NAMES, rows: written(row.names), to }));
  if (row.names_total <= row.names.length) return room;
  const load = async () => {
    try {
      const query = { rank: context.rank, filter: `part:${row.part}`, limit: MOST_NAMES };
      const page = await context.api.get(`api/runs/${context.run}/table/breakdown_names`, query);
      const keys = page.columns.map((/** @type {import("../types").Column} */ column) => column.name);
      const all = page.rows.map((/** @type {any[]} */ values) =>
        Object.fromEntries(values.map((value, at) => [keys[at], value])),
      );
      const mine = all.filter((/** @type {any} */ each) => each.part === row.part);
      fill(room, table({ columns: NAMES, rows: written(mine), total: row.names_total, whole: true, to }));
    } catch (error) {
      if (!isLeft(error)) fill(room, failure(error, load));
    }
  };
  const words = `show all ${count(row.names_total)} names; these are the ${count(row.names.length)} longest`;
  room.append(h("button", { type: "button", onclick: load }, words));
  return room;
}

const NAMES = [
  { key: "place", title: "where", tip: "Before the event by this name, which came next, or after all that was recorded of a step" },
  { key: "name", title: "name", kind: "name" },
  { key: "detail", title: "mostly at or in", kind: "name", tip: "Where a wait was asked for, or what was slow inside" },
  { key: "thread", title: "thread" },
  { key: "ns", title: "per step", kind: "ns" },
  { key: "share", title: "of the part", kind: "share", bar: true },
];
