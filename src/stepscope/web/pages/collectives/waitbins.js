// How long ranks waited in collectives: one bar for each doubling of the wait, stacked by operation.

import { figure, plain } from "../../ui/figure.js";
import { count, duration, share } from "../../text/format.js";
import { clipped } from "../../text/names.js";

const NAMES = 6; // operations with a colour of their own
const LEAST_NS = 1000; // the first bin is all that is shorter
const COLOURS = ["p-collective", "p-copy", "p-input", "p-io", "p-compile", "p-python"];

/** @typedef {{ name: string, counts: number[] }} Series */

/** The words of a bin: the first holds what is shorter than 1 µs, each one after it twice as long waits as the one before. @param {number} at */
export function binWords(at) {
  if (at === 0) return `< ${written(LEAST_NS)}`;
  return `${written(startOf(at))} – ${written(startOf(at + 1))}`;
}

/** The shortest wait of a bin after the first. @param {number} at */
function startOf(at) {
  return LEAST_NS * 2 ** (at - 1);
}

/** Without zeros that say nothing. @param {number} ns */
function written(ns) {
  return duration(ns).replace(/\.00? /, " ");
}

/**
 * By operation, whatever its group and type; those with the most arrivals first, the rest as one.
 * @param {Record<string, any>[]} rows
 * @returns {Series[]}
 */
export function seriesOf(rows) {
  /** @type {Map<string, number[]>} */
  const found = new Map();
  for (const row of rows) {
    if (!row.wait_histogram?.length) continue;
    found.set(row.name, added(found.get(row.name) ?? [], row.wait_histogram));
  }
  const all = [...found].map(([name, counts]) => ({ name, counts })).sort((a, b) => total(b) - total(a));
  const rest = all.slice(NAMES);
  if (!rest.length) return all;
  return [...all.slice(0, NAMES), { name: `${rest.length} others`, counts: rest.reduce((sum, each) => added(sum, each.counts), /** @type {number[]} */ ([])) }];
}

/** @param {number[]} one @param {number[]} other */
function added(one, other) {
  return Array.from({ length: Math.max(one.length, other.length) }, (_, at) => (one[at] ?? 0) + (other[at] ?? 0));
}

/** @param {Series} series */
function total(series) {
  return series.counts.reduce((sum, each) => sum + each, 0);
}

/** Nothing where no collective was found on several ranks. @param {import("../../types").Report} report */
export function waitBins(report) {
  const series = seriesOf(report.collectives.rows);
  const bins = Math.max(0, ...series.map((each) => each.counts.length));
  if (!bins) return null;
  const labels = Array.from({ length: bins }, (_, at) => plain(binWords(at)));
  const all = series.reduce((sum, each) => sum + total(each), 0);
  return figure({
    title: "How long ranks waited in a collective",
    unit: "arrivals of a rank at a collective, by how long it then waited for the last one",
    help: "report/collectives#which-rank-waits-for-which",
    height: 260,
    note: "The rank that comes last does not wait: it counts as the shortest wait.",
    draw: (colour) => ({
      data: series.map((each, number) => ({
        type: "bar",
        name: plain(clipped(each.name, 40)),
        x: labels,
        y: labels.map((_, at) => each.counts[at] ?? 0),
        marker: { color: colour(COLOURS[number] ?? "p-unexplained") },
        customdata: labels.map((_, at) => [
          count(each.counts[at] ?? 0),
          share((each.counts[at] ?? 0) / all),
          plain(clipped(each.name, 80)),
        ]),
        hovertemplate: "%{customdata[2]}<br>waited %{x}: %{customdata[0]} arrivals (%{customdata[1]})<extra></extra>",
      })),
      layout: {
        barmode: "stack",
        bargap: 0.15,
        showlegend: true,
        xaxis: {
          title: { text: "wait (at least this long, less than the next)" },
          type: "category",
          tickvals: labels,
          ticktext: labels.map((_, at) => (at ? written(startOf(at)) : labels[0])),
        },
        yaxis: { title: { text: "arrivals" }, rangemode: "tozero" },
      },
    }),
  });
}
