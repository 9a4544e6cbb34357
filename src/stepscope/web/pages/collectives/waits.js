// Rank against rank: which rank waited for which, the collectives that cost most, and how far the clocks are apart.

import { openEvents, eventsLink } from "../../ui/events.js";
import { figure, timeAxis } from "../../ui/figure.js";
import { duration } from "../../text/format.js";
import { table } from "../../ui/tables.js";
import { MOST_ROWS, areMany } from "./deviation.js";

const WORST = [
  { key: "name", title: "operation", kind: "name" },
  { key: "group", title: "group" },
  { key: "step", title: "step", kind: "number" },
  { key: "ranks", title: "ranks", kind: "count" },
  { key: "bytes", title: "bytes", kind: "bytes" },
  { key: "first_rank", title: "first", kind: "number", tip: "The rank that came first" },
  { key: "last_rank", title: "last", kind: "number", tip: "The rank that came last" },
  { key: "skew_ns", title: "last after first", kind: "ns" },
  { key: "wait_ns", title: "mean wait", kind: "ns" },
  { key: "transfer_ns", title: "transfer", kind: "ns" },
];
const CLOCKS = [
  { key: "rank", title: "rank", kind: "number" },
  { key: "aligned", title: "aligned", kind: "flag" },
  { key: "offset_ns", title: "ahead of the first rank", kind: "ns" },
  { key: "drift_ppm", title: "drift [ppm]", kind: "number" },
  { key: "residual_ns", title: "error after the fit", kind: "ns" },
  { key: "anchors", title: "anchors", kind: "count", tip: "Collectives that end for all ranks at once" },
];

/**
 * All of them; of many those that waited longest or were waited for.
 * @param {number[]} ranks @param {{ rank: number, for_rank: number, wait_ns: number }[]} waits
 */
export function shownRanks(ranks, waits) {
  if (!areMany(ranks.length)) return ranks;
  const longest = [...waits].sort((a, b) => b.wait_ns - a.wait_ns);
  const involved = new Set(longest.flatMap((wait) => [wait.for_rank, wait.rank]));
  return [...involved].slice(0, MOST_ROWS).sort((a, b) => a - b);
}

/** A square for each pair of ranks; a click opens the collectives of the one that waited. @param {import("../../types").Report} report @param {import("../../types").Context} context */
export function waitsFigure(report, context) {
  const waits = report.collectives.waits ?? [];
  if (!waits.length) return null;
  const ranks = shownRanks(report.profile.ranks, waits);
  const found = new Map(waits.map((wait) => [`${wait.rank} ${wait.for_rank}`, wait]));
  const { scale, unit } = timeAxis(Math.max(...waits.map((wait) => wait.wait_ns)));
  const words = (/** @type {number} */ rank, /** @type {number} */ other) => {
    const wait = found.get(`${rank} ${other}`);
    return wait
      ? `rank ${rank} waited ${duration(wait.wait_ns)} for rank ${other}, in ${wait.calls} collectives`
      : `rank ${rank} did not wait for rank ${other}`;
  };
  return figure({
    title: "Which rank waited for which",
    unit: `${unit}, summed over the collectives that ranks were matched in`,
    help: "report/collectives",
    height: Math.max(200, Math.min(700, 110 + 26 * ranks.length)),
    draw: (colour) => ({
      data: [
        {
          type: "heatmap",
          x: ranks.map((rank) => `rank ${rank}`),
          y: ranks.map((rank) => `rank ${rank}`),
          z: ranks.map((rank) => ranks.map((other) => (found.get(`${rank} ${other}`)?.wait_ns ?? 0) / scale)),
          text: ranks.map((rank) => ranks.map((other) => words(rank, other))),
          hoverinfo: "text",
          colorscale: [
            [0, colour("card")],
            [1, colour("p-collective")],
          ],
          colorbar: { title: { text: unit, side: "right" }, thickness: 12, outlinewidth: 0 },
          xgap: 1,
          ygap: 1,
        },
      ],
      layout: {
        xaxis: { title: { text: "waited for" }, type: "category", showgrid: false },
        yaxis: { title: { text: "who waited", standoff: 10 }, autorange: "reversed", type: "category", showgrid: false },
        margin: { l: 90, r: 10, t: 8, b: 44 },
      },
    }),
    note: "Click a square to see the collectives of the rank that waited, the longest first.",
    onClick: (event) => openEvents(context, "collective", "", null, ranks[event.points[0].pointIndex[0]]),
  });
}

/** The collectives in which ranks waited longest; a row opens the calls of that step, on all ranks. @param {import("../../types").Report} report @param {import("../../types").Context} context */
export function worstTable(report, context) {
  const rows = report.collectives.worst ?? [];
  if (!rows.length) return null;
  return table({
    title: "Collectives in which ranks waited longest",
    columns: WORST,
    rows,
    to: (row) => eventsLink(context, "collective", row.name, { group: row.group, step: row.step, bytes: row.bytes }),
  });
}

/** @param {import("../../types").Report} report */
export function clocksTable(report) {
  const rows = report.collectives.clocks ?? [];
  return rows.length > 1 ? table({ title: "Clocks of the ranks", columns: CLOCKS, rows }) : null;
}
