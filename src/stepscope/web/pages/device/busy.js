// How busy devices were over time: a curve for each of a few, a row of a heat map for each of many.

import { openEvents } from "../../ui/events.js";
import { figure, timeAxis } from "../../ui/figure.js";
import { count, duration, share, signed } from "../../text/format.js";
import { choice } from "../../ui/pieces.js";

const CURVES = 3; // more cannot be told apart
const ROWS = 64;
const BINS = 200;
const COLOURS = ["p-compute", "p-input", "p-collective"];

/** @typedef {import("../../types").Report["device"]["timeline"][number]} Piece */

/**
 * The mean of each of so many equal stretches of time; null where nothing is known.
 * @param {Piece[]} pieces @param {number} begin @param {number} end @param {number} bins
 */
export function binned(pieces, begin, end, bins) {
  const width = (end - begin) / bins;
  const busy = new Float64Array(bins);
  const known = new Float64Array(bins);
  for (const piece of pieces) {
    const last = Math.min(bins - 1, Math.floor((piece.end_ns - begin) / width));
    for (let at = Math.max(0, Math.floor((piece.start_ns - begin) / width)); at <= last; at += 1) {
      const low = Math.max(piece.start_ns, begin + at * width);
      const high = Math.min(piece.end_ns, begin + (at + 1) * width);
      if (high <= low) continue;
      busy[at] += piece.busy * (high - low);
      known[at] += high - low;
    }
  }
  return Array.from(busy, (sum, at) => (known[at] > 0 ? sum / known[at] : null));
}

/** How far each device is from the median of all at that moment; null where it is not known. @param {(number | null)[][]} cells a line for each device */
export function deviations(cells) {
  const medians = (cells[0] ?? []).map((_, at) => median(cells.map((line) => line[at])));
  return cells.map((line) => line.map((each, at) => (each === null || medians[at] === null ? null : each - /** @type {number} */ (medians[at]))));
}

/** @param {(number | null)[]} values */
function median(values) {
  const known = values.filter((each) => each !== null).sort((a, b) => Number(a) - Number(b));
  const middle = known.length >> 1;
  if (!known.length) return null;
  return known.length % 2 ? known[middle] : (Number(known[middle - 1]) + Number(known[middle])) / 2;
}

/** @param {import("../../types").Report} report @param {import("../../types").Context} context */
export function busyFigure(report, context) {
  const rows = report.device.timeline;
  /** @type {Map<string, Piece[]>} */
  const devices = new Map();
  for (const row of rows) {
    const key = `device ${row.device}${report.profile.ranks.length > 1 ? ` of rank ${row.rank ?? 0}` : ""}`;
    devices.set(key, [...(devices.get(key) ?? []), row]);
  }
  const begin = rows.reduce((least, row) => Math.min(least, row.start_ns), Infinity);
  const end = rows.reduce((most, row) => Math.max(most, row.end_ns), -Infinity);
  /** Why it was idle then. @param {Piece[]} pieces @param {number} low @param {number} high since the first step began */
  const open = (pieces, low, high) =>
    openEvents(context, "idle", pieces[0].device ?? "", { start: Math.round(begin + low), end: Math.round(begin + high) }, pieces[0].rank ?? context.rank);
  return devices.size > CURVES ? heat(devices, begin, end, open) : curves(devices, begin, end, open);
}

/** @typedef {(pieces: Piece[], low: number, high: number) => void} Open */

/** @param {Map<string, Piece[]>} devices @param {number} begin @param {number} end @param {Open} open */
function curves(devices, begin, end, open) {
  const { scale, unit } = timeAxis(end - begin);
  return figure({
    title: "How busy the device was",
    unit: `share of time in which a kernel or a copy ran, over ${unit}`,
    help: "report/device",
    height: 260,
    draw: (colour) => ({
      data: [...devices].map(([name, mine], at) => ({
        type: "scatter",
        mode: "lines",
        name,
        x: mine.flatMap((row) => [row.start_ns, row.end_ns]).map((ns) => (ns - begin) / scale),
        y: mine.flatMap((row) => [100 * row.busy, 100 * row.busy]),
        line: { color: colour(COLOURS[at]), width: 1.4, shape: "hv" },
        fill: devices.size === 1 ? "tozeroy" : "none",
        hovertemplate: `%{x:.3f} ${unit}: %{y:.1f} % busy<extra>${name}</extra>`,
      })),
      layout: {
        xaxis: { title: { text: `time since the first step began [${unit}]` } },
        yaxis: { title: { text: "busy [%]" }, range: [0, 102] },
        showlegend: devices.size > 1,
      },
    }),
    note: "Click the curve to see why the device was idle then, in the trace.",
    onClick: (event) => {
      const pieces = [...devices.values()][event.points[0].curveNumber];
      const piece = pieces[Math.floor((event.points[0].pointNumber ?? event.points[0].pointIndex) / 2)];
      if (piece) open(pieces, piece.start_ns - begin, piece.end_ns - begin);
    },
  });
}

/** @param {Map<string, Piece[]>} devices @param {number} begin @param {number} end @param {Open} open */
function heat(devices, begin, end, open) {
  const { scale, unit } = timeAxis(end - begin);
  const shown = [...devices].slice(0, ROWS);
  const width = (end - begin) / BINS;
  const cells = shown.map(([, pieces]) => binned(pieces, begin, end, BINS));
  const away = deviations(cells);
  const most = Math.max(0.01, ...away.flat().map((each) => Math.abs(each ?? 0)));
  let isAway = true;
  const how = choice(
    "colour",
    [
      ["away", "deviation from the median"],
      ["busy", "busy"],
    ],
    "away",
    (value) => {
      isAway = value === "away";
      void element.redraw();
    },
  );
  const element = figure({
    title: "How busy the devices were",
    unit: `over ${unit}: how far each is from the median of all at that moment, or how busy`,
    tools: [how],
    help: "report/device",
    height: Math.max(200, Math.min(700, 110 + 22 * shown.length)),
    note:
      shown.length < devices.size
        ? `The first ${shown.length} of ${count(devices.size)} devices; choose a rank in the header to see the others.`
        : "",
    draw: (colour) => ({
      data: [
        {
          type: "heatmap",
          x: Array.from({ length: BINS }, (_, at) => ((at + 0.5) * width) / scale),
          y: shown.map(([name]) => name),
          z: (isAway ? away : cells).map((line) => line.map((each) => (each === null ? null : 100 * each))),
          text: cells.map((line, at) =>
            line.map((each, place) => `${shown[at][0]}, ${duration(place * width)}: ${each === null ? "not recorded" : `${share(each)} busy, ${signed(away[at][place] ?? 0, share)} from the median`}`),
          ),
          hoverinfo: "text",
          colorscale: isAway
            ? [
                [0, colour("error")],
                [0.5, colour("card")],
                [1, colour("accent")],
              ]
            : [
                [0, colour("card")],
                [1, colour("accent")],
              ],
          zmin: isAway ? -100 * most : 0,
          zmax: isAway ? 100 * most : 100,
          colorbar: { title: { text: isAway ? "from the median [%]" : "busy [%]", side: "right" }, thickness: 12, outlinewidth: 0 },
          ygap: 1,
        },
      ],
      layout: {
        xaxis: { title: { text: `time since the first step began [${unit}]` }, showgrid: false },
        yaxis: { autorange: "reversed", type: "category", showgrid: false },
        margin: { l: 120, r: 10, t: 8, b: 44 },
      },
    }),
    onClick: (event) => {
      const [row, at] = event.points[0].pointIndex;
      open(shown[row][1], at * width, (at + 1) * width);
    },
  });
  return element;
}
