// The roofline: what each class and op reaches, over its FLOPs per byte, below what the device can do.

import { openEvents } from "./events.js";
import { figure, plain } from "./figure.js";
import { choice } from "./pieces.js";
import { count, duration, scaled, share, significant } from "../text/format.js";
import { clipped } from "../text/names.js";
import { empty } from "../shell/notice.js";

const COLOURS = ["p-compute", "p-input", "p-collective", "p-copy", "p-compile", "p-io", "p-python", "p-sync", "p-host_collective", "p-device_gap"];
const SMALLEST = 7; // pixels of a point, and how much larger one is that has all of compute
const LARGEST = 26;
const MARGIN = 2; // the axes go beyond what is drawn by this factor
const NARROW = 520; // below, names of ceilings do not fit beside the points

/**
 * @typedef {import("../types").Report["roofline"]} Roofline
 * @typedef {{ row: Record<string, any>, x: number, y: number }} Point
 * @typedef {{ name: string, rate: number }} Ceiling
 */

/** Where each row is: FLOPs per byte, and FLOP/s. What does no arithmetic has no place on logarithmic axes. @param {Record<string, any>[]} rows @returns {Point[]} */
export function pointsOf(rows) {
  return rows
    .filter((row) => row.flops_per_s > 0 && row.bytes_per_s > 0)
    .map((row) => ({ row, x: row.flops_per_s / row.bytes_per_s, y: row.flops_per_s }));
}

/** Number formats of the same peak are one ceiling; the highest first. @param {Record<string, number>} peaks @returns {Ceiling[]} */
export function formatsOf(peaks) {
  /** @type {Map<number, string[]>} */
  const byRate = new Map();
  for (const [name, rate] of Object.entries(peaks)) if (rate > 0) byRate.set(rate, [...(byRate.get(rate) ?? []), name]);
  return [...byRate].map(([rate, names]) => ({ name: names.join(", "), rate })).sort((a, b) => b.rate - a.rate);
}

/** The highest first. @param {Record<string, any>} peak @returns {Ceiling[]} */
export function bandwidthsOf(peak) {
  const known = [
    { name: "L2", rate: peak.l2_bytes_per_s },
    { name: "memory", rate: peak.bytes_per_s },
  ];
  return known.filter((each) => each.rate > 0).sort((a, b) => b.rate - a.rate);
}

/**
 * The ends of all axes and lines: each bandwidth rises to the highest peak, each peak begins where the highest bandwidth meets it.
 * @param {Point[]} points @param {Record<string, any>} peak
 */
export function layoutOf(points, peak) {
  const formats = formatsOf(peak.flops_per_s ?? {});
  const widths = bandwidthsOf(peak);
  const ridges = formats.flatMap((format) => widths.map((width) => format.rate / width.rate));
  const xs = [...points.map((point) => point.x), ...ridges];
  const ys = [...points.map((point) => point.y), ...formats.map((format) => format.rate)];
  const x = /** @type {[number, number]} */ ([Math.min(...xs) / MARGIN, Math.max(...xs) * MARGIN]);
  const y = /** @type {[number, number]} */ ([Math.min(...ys) / MARGIN, Math.max(...ys) * MARGIN]);
  const top = formats[0]?.rate ?? y[1];
  return {
    x,
    y,
    flat: formats.map((each) => ({ ...each, from: widths.length ? each.rate / widths[0].rate : x[0], to: x[1] })),
    rising: widths.map((each) => ({ ...each, from: Math.max(x[0], y[0] / each.rate), to: Math.min(x[1], top / each.rate) })),
  };
}

/** What a point says. @param {Point} point */
export function wordsOf({ row, x, y }) {
  const bound = row.bound ? `, bound by ${boundName(row.bound)}` : "";
  return [
    row.op === null ? `all ${row.class}` : `${clipped(row.op, 140)} (${row.class})`,
    `${scaled(y)}FLOP/s at ${significant(x)} FLOP/B, ${scaled(row.bytes_per_s)}B/s`,
    `${row.share_of_bound === null ? "bound unknown" : `${share(row.share_of_bound)} of its bound`}${bound}`,
    `${duration(row.time_ns)} (${share(row.share)} of compute), ${count(row.kernels)} kernels`,
  ];
}

/** @param {string} bound */
export function boundName(bound) {
  return { flops: "FLOPs", hbm: "memory bandwidth", l2: "L2 bandwidth" }[bound] ?? bound;
}

/** A tick for each power of ten: Plotly itself has none of the prefixes beyond T. @param {number[]} range */
export function powers([low, high]) {
  const first = Math.ceil(Math.log10(low));
  const tickvals = Array.from({ length: Math.floor(Math.log10(high)) - first + 1 }, (_, at) => 10 ** (first + at));
  return { tickvals, ticktext: tickvals.map((each) => scaled(each).replace(" ", "")) };
}

/** The chart, or what to record for one. @param {import("../types").Context} context @param {Roofline} roofline */
export function rooflineChart(context, roofline) {
  const points = pointsOf(roofline.rows);
  if (!roofline.peaks.length)
    return empty(
      "No roofline: the peaks of this device are not known.",
      "Run stepscope calibrate on the machine that has it; reports then use what was measured.",
    );
  if (!points.length)
    return empty(
      "No roofline: the work of the kernels is not known.",
      "Record with shapes: record_shapes=True of torch.profiler, or the device's own trace of JAX and TensorFlow, which has them.",
    );
  return drawn(context, roofline, points);
}

/** @param {import("../types").Context} context @param {Roofline} roofline @param {Point[]} points */
function drawn(context, roofline, points) {
  let peak = roofline.peaks[0];
  const classes = [...new Set(points.map((point) => String(point.row.class)))];
  const groups = classes.map((name) => points.filter((point) => point.row.class === name));
  const element = figure({
    title: "Roofline",
    unit: "achieved FLOP/s over FLOPs per byte; the larger a point, the more time",
    help: "report/roofline",
    height: 460,
    note: noteOf(roofline, points),
    tools:
      roofline.peaks.length > 1
        ? [
            choice("ceilings of", roofline.peaks.map((each) => [each.device, each.device]), peak.device, (name) => {
              peak = roofline.peaks.find((each) => each.device === name) ?? peak;
              void element.redraw();
            }),
          ]
        : undefined,
    draw: (colour) => {
      const lines = layoutOf(points, peak);
      return {
        data: groups.map((group, at) => trace(group, classes[at], colour(COLOURS[at % COLOURS.length]), colour("paper"))),
        layout: {
          hovermode: "closest",
          showlegend: true,
          xaxis: { type: "log", range: lines.x.map(Math.log10), title: { text: "FLOPs per byte" }, exponentformat: "SI", dtick: 1 },
          yaxis: { type: "log", range: lines.y.map(Math.log10), title: { text: "FLOP/s" }, ...powers(lines.y) },
          shapes: [...lines.flat.map((each) => line(each.from, each.rate, each.to, each.rate, colour)), ...lines.rising.map((each) => line(each.from, each.from * each.rate, each.to, each.to * each.rate, colour))],
          annotations: element.clientWidth < NARROW ? [] : labels(lines, colour),
        },
      };
    },
    onClick: (event) => {
      const point = groups[event.points[0].curveNumber]?.[event.points[0].pointNumber];
      if (point) openEvents(context, "roofline", point.row.class ?? "", factsOf(point.row));
    },
  });
  return element;
}

/** What distinguishes its kernels from others of their class. @param {Record<string, any>} row @returns {Record<string, any> | null} */
export function factsOf(row) {
  return row.op === null ? null : { op: row.op };
}

/** @param {Point[]} group @param {string} name @param {string} fill @param {string} edge */
function trace(group, name, fill, edge) {
  return {
    type: "scatter",
    mode: "markers",
    name,
    x: group.map((point) => point.x),
    y: group.map((point) => point.y),
    text: group.map((point) => wordsOf(point).map(plain).join("<br>")),
    hoverinfo: "text",
    marker: {
      color: fill,
      size: group.map((point) => SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(Math.min(1, point.row.share))),
      symbol: group.map((point) => (point.row.op === null ? "diamond" : "circle")),
      opacity: 0.85,
      line: { color: edge, width: 1 },
    },
  };
}

/** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {(name: string) => string} colour */
function line(x0, y0, x1, y1, colour) {
  return { type: "line", layer: "below", x0, y0, x1, y1, line: { color: colour("faint"), width: 1.2 } };
}

/** Names of the lines: those of peaks at their end, those of bandwidths at their beginning. @param {ReturnType<typeof layoutOf>} lines @param {(name: string) => string} colour */
function labels(lines, colour) {
  const one = { showarrow: false, font: { size: 11, color: colour("faint") }, bgcolor: colour("paper") };
  return [
    ...lines.flat.map((each) => ({
      ...one,
      text: plain(`${each.name}: ${scaled(each.rate)}FLOP/s`),
      x: Math.log10(each.to),
      y: Math.log10(each.rate),
      xanchor: "right",
      yanchor: "bottom",
    })),
    ...lines.rising.map((each) => ({
      ...one,
      text: plain(`${each.name}: ${scaled(each.rate)}B/s`),
      x: Math.log10(each.from),
      y: Math.log10(each.from * each.rate),
      xanchor: "left",
      yanchor: "bottom",
    })),
  ];
}

/** @param {Roofline} roofline @param {Point[]} points */
function noteOf(roofline, points) {
  const without = roofline.rows.length - points.length;
  return [
    "Diamonds are classes, circles their ops. Click a point to see its kernels in the trace.",
    without ? `${count(without)} of ${count(roofline.rows.length)} rows do no arithmetic, or their work is not known; the table has them.` : "",
  ]
    .filter(Boolean)
    .join(" ");
}
