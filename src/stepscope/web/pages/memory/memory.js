// Memory over time: the peak and what it was made of, any stretch of the curve, and what was live at a moment.

import { isLeft } from "../../shell/api.js";
import { fill, h } from "../../ui/dom.js";
import { eventsLink } from "../../ui/events.js";
import { figure, sizeAxis, timeAxis } from "../../ui/figure.js";
import { duration, share, signed, size } from "../../text/format.js";
import { latest } from "../../shell/latest.js";
import { lifetimes } from "./lifetimes.js";
import { liveAt } from "./live.js";
import { snapshotView } from "./snapshot.js";
import { empty, failure } from "../../shell/notice.js";
import { choice, facts, fullest, pageHead, whereOf } from "../../ui/pieces.js";
import { integer } from "../../shell/route.js";

const POINTS = 3000;
const COARSE = 100; // points from which on the report's own curve may leave dips out

/** @type {import("../../types").Page} */
export const page = { name: "memory", title: "Memory", render };

/** @param {HTMLElement} root @param {import("../../types").Context} context */
async function render(root, context) {
  const report = await context.report();
  const devices = report.memory.devices;
  if (!devices.length) {
    fill(
      root,
      pageHead("Memory", "page/memory"),
      empty(
        "No memory was recorded.",
        "The capture did not ask for it: profile_memory=True in PyTorch, host and device tracers in TensorFlow and JAX.",
      ),
    );
    return;
  }
  const names = devices.map((found) => whereOf(report, found));
  let at = names.indexOf(context.params.get("device") ?? "");
  if (at < 0) at = fullest(devices);
  const room = h("div", {});
  const show = () => fill(room, ...device(context, devices[at], names[at], report.profile.framework === "jax"));
  fill(
    root,
    pageHead("Memory", "page/memory"),
    names.length > 1
      ? h(
          "div",
          { class: "row" },
          choice(
            "memory of",
            names.map((name) => [name, name]),
            names[at],
            (name) => {
              at = names.indexOf(name);
              context.setParams({ device: name, at: null, start: null, end: null });
              show();
            },
          ),
        )
      : null,
    room,
  );
  show();
}

/** How the server calls it. @param {import("../../types").MemoryDevice} found */
function keyOf(found) {
  return found.device_kind === "cpu" ? "cpu" : `${found.device_kind}:${found.device ?? ""}`;
}

/** Where a row of what is live leads: its allocations. What was there before the recording has none, nor have a program's buffers. @param {import("../../types").Context} context @param {import("../../types").MemoryDevice} found @param {number | null} at a moment, null for the peak */
function allocations(context, found, at) {
  const rank = context.rank ?? found.rank;
  return (/** @type {Record<string, any>} */ row) => {
    if (found.source === "hlo" || (row.kind === "unknown" && row.op === null)) return null;
    return eventsLink(context, "memory", row.kind, { op: row.op, scope: row.scope, device: keyOf(found), ...(at === null ? {} : { at }) }, rank);
  };
}

/** @param {import("../../types").Context} context @param {import("../../types").MemoryDevice} found @param {string} name @param {boolean} isJax */
function device(context, found, name, isJax) {
  const told = facts([
    ["peak", found.peak_bytes === null ? null : size(found.peak_bytes)],
    ["reserved at most", found.reserved_peak ? size(found.reserved_peak) : null],
    ["capacity", found.capacity_bytes === null ? null : size(found.capacity_bytes)],
    ["growth per step", found.growth_bytes_per_step === null ? null : signed(found.growth_bytes_per_step, size)],
    ["never freed", found.never_freed_bytes ? size(found.never_freed_bytes) : null],
    ["fragmentation", found.fragmentation === null ? null : share(found.fragmentation)],
    ["of the peak recorded", found.known_share === null ? null : share(found.known_share)],
  ]);
  if (found.source === "snapshot") return [told, found.note ? h("p", { class: "sub" }, found.note) : null, snapshotView(context, found, name, isJax)];
  const live = h("div", {});
  const atPeak = () => fill(live, ...liveAt(`Live at the peak of ${name}`, allocations(context, found, null), found.at_peak, found.peak_bytes, found.at_peak_total));
  atPeak();
  return [
    told,
    found.note ? h("p", { class: "sub" }, found.note) : null,
    found.timeline.length
      ? curve(context, found, name, live, atPeak)
      : empty(
          "No curve.",
          found.source === "hlo"
            ? "This is the memory of one compiled program, which it takes as a whole; below is what it uses of it from one instruction to the next."
            : "The profile has totals, but no allocations over time.",
        ),
    lifetimes(context, found, name),
    live,
  ];
}

/**
 * @param {import("../../types").Context} context
 * @param {import("../../types").MemoryDevice} found
 * @param {string} name
 * @param {HTMLElement} live
 * @param {() => void} atPeak
 */
function curve(context, found, name, live, atPeak) {
  const key = keyOf(found);
  const rank = context.rank ?? found.rank;
  const begin = found.timeline[0].time_ns;
  const whole = found.timeline.map((point) => [point.time_ns, point.allocated, point.reserved]);
  /** @type {(number | null)[][]} */
  let points = whole;
  let moment = integer(context.params, "at");
  let range = /** @type {[number, number] | null} */ (null);
  const [start, end] = [integer(context.params, "start"), integer(context.params, "end")];
  if (start !== null && end !== null) range = [start, end];
  const { scale: time, unit: timeUnit } = timeAxis(Number(whole[whole.length - 1][0]) - begin);
  const { scale: bytes, unit: bytesUnit } = sizeAxis(Math.max(found.peak_bytes ?? 0, found.reserved_peak ?? 0, 1));
  const ask = (/** @type {import("../../types").Query} */ query) =>
    context.api.get(`api/runs/${context.run}/memory`, { rank, device: key, ...query });
  const trouble = h("div", {});
  const element = h("div", {});
  const [ofRange, ofMoment] = [latest(), latest()];
  let working = 0;
  /** @param {() => Promise<void>} work */
  const tried = async (work) => {
    working += 1;
    element.setAttribute("aria-busy", "true");
    try {
      await work();
      fill(trouble);
    } catch (error) {
      if (!isLeft(error)) fill(trouble, failure(error));
    } finally {
      working -= 1;
      element.setAttribute("aria-busy", String(working > 0));
    }
  };
  const zoom = () =>
    tried(async () => {
      points = (await ofRange(ask({ start: range?.[0], end: range?.[1], points: POINTS }))).timeline;
      await drawing.redraw();
    });
  const look = () =>
    tried(async () => {
      const when = moment;
      const answer = await ofMoment(when === null ? null : ask({ at: when, points: 2 }).then((found) => found.at));
      if (when === null) {
        atPeak();
        return;
      }
      fill(
        live,
        ...liveAt(
          `Live ${duration(when - begin)} after the first allocation`,
          allocations(context, found, when),
          answer.rows,
          answer.bytes,
          answer.total,
        ),
        h(
          "button",
          {
            type: "button",
            onclick: () => {
              moment = null;
              context.setParams({ at: null });
              void look();
              void drawing.redraw();
            },
          },
          "Back to the peak",
        ),
      );
    });
  const drawing = figure({
    title: `Memory of ${name}`,
    unit: `${bytesUnit} over ${timeUnit}`,
    help: "report/memory",
    height: 320,
    note: "Where there are more allocations than points, the highest and the last of each moment are drawn. Drag over a range to see it in full detail, double-click to see all again. Click on the curve to see what was live at that moment.",
    draw: (colour) => ({
      data: curves(points, { colour, time, bytes, begin, bytesUnit }),
      layout: {
        xaxis: {
          title: { text: `time since the first allocation [${timeUnit}]` },
          ...(range ? { range: range.map((ns) => (ns - begin) / time) } : { autorange: true }),
        },
        yaxis: { title: { text: `memory [${bytesUnit}]` }, rangemode: "tozero" },
        showlegend: true,
        hovermode: "x",
        shapes: (moment === null ? [] : [line((moment - begin) / time, colour("ink"))]).concat(
          found.peak_at_ns === null ? [] : [line((found.peak_at_ns - begin) / time, colour("error"))],
        ),
        annotations:
          found.peak_at_ns === null
            ? []
            : [
                {
                  x: (found.peak_at_ns - begin) / time,
                  y: 1,
                  yref: "paper",
                  text: "peak",
                  showarrow: false,
                  xanchor: "left",
                  yanchor: "top",
                  xshift: 4,
                  font: { color: colour("error"), size: 11 },
                },
              ],
      },
    }),
    onClick: (event) => {
      moment = Math.round(begin + event.points[0].x * time);
      context.setParams({ at: moment, device: name });
      void look();
      void drawing.redraw();
    },
    onRange: (event) => {
      const low = event["xaxis.range[0]"],
        high = event["xaxis.range[1]"];
      if (low === undefined && !event["xaxis.autorange"]) return;
      range = low === undefined ? null : [Math.round(begin + low * time), Math.round(begin + high * time)];
      context.setParams({ start: range?.[0], end: range?.[1], device: name }, { replace: true });
      void zoom();
    },
  });
  if (range || whole.length >= COARSE) void zoom();
  if (moment !== null) void look();
  element.append(drawing, trouble);
  return element;
}

/** @param {(number | null)[][]} points @param {{ colour: (name: string) => string, time: number, bytes: number, begin: number, bytesUnit: string }} how */
function curves(points, how) {
  const x = points.map(([ns]) => (Number(ns) - how.begin) / how.time);
  const one = (
    /** @type {string} */ name,
    /** @type {number} */ at,
    /** @type {string} */ tint,
    /** @type {boolean} */ fills,
  ) => ({
    type: "scatter",
    mode: "lines",
    name,
    x,
    y: points.map((point) => (point[at] === null ? null : Number(point[at]) / how.bytes)),
    line: { shape: "hv", width: 1.5, color: how.colour(tint) },
    fill: fills ? "tozeroy" : "none",
    hovertemplate: `${name}: %{y:.2f} ${how.bytesUnit}<extra></extra>`,
  });
  const reserved = points.some((point) => point[2]) ? [one("reserved", 2, "m-reserved", false)] : [];
  return [one("allocated", 1, "m-allocated", true), ...reserved];
}

/** @param {number} x @param {string} colour */
function line(x, colour) {
  return { type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: colour, width: 1, dash: "dot" } };
}
