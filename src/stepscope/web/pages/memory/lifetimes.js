// The lives of the buffers that make up the peak: a bar for each, from its allocation to its release, as high as it is large.

import { isLeft } from "../../shell/api.js";
import { fill, h } from "../../ui/dom.js";
import { figure, plain, sizeAxis, timeAxis } from "../../ui/figure.js";
import { count, duration, many, size } from "../../text/format.js";
import { clipped } from "../../text/names.js";
import { empty, failure } from "../../shell/notice.js";
import { KINDS } from "./live.js";

/**
 * @typedef {{ begin: number, end: number | null, kind: string, op: string | null, scope: string | null, bytes: number }} Life
 * @typedef {{ unit: "ns" | "instruction", rows: Life[], curve: [number, number | null][], peak_at: number | null, left_out: number, left_bytes: number }} Lives
 * @typedef {Life & { from: number, to: number, low: number }} Bar
 */

/** Bars on top of each other, those that live longest at the bottom; what is never released lasts to the end. @param {Lives} lives @returns {Bar[]} */
export function barsOf(lives) {
  const times = lives.curve.map(([time]) => time);
  const first = times[0] ?? Math.min(...lives.rows.map((row) => row.begin), 0);
  const last = Math.max(times[times.length - 1] ?? 0, ...lives.rows.map((row) => row.end ?? row.begin));
  let low = 0;
  return lives.rows
    .map((row) => ({ ...row, from: row.begin - first, to: (row.end ?? last) - first, low: 0 }))
    .sort((a, b) => b.to - b.from - (a.to - a.from) || b.bytes - a.bytes)
    .map((bar) => {
      const placed = { ...bar, low };
      low += bar.bytes;
      return placed;
    });
}

/** @param {import("../../types").Context} context @param {import("../../types").MemoryDevice} found @param {string} name */
export function lifetimes(context, found, name) {
  const room = h("div", {}, h("p", { class: "sub wait" }, "Loading …"));
  const device = found.device_kind === "cpu" ? "cpu" : `${found.device_kind}:${found.device ?? ""}`;
  const load = async () => {
    try {
      const query = { rank: context.rank ?? found.rank, device, program: found.source === "hlo" };
      fill(room, drawn(await context.api.get(`api/runs/${context.run}/memory/lives`, query), name));
    } catch (error) {
      if (!isLeft(error)) fill(room, failure(error, load));
    }
  };
  void load();
  return room;
}

/** @param {Lives} lives @param {string} name */
function drawn(lives, name) {
  if (!lives.rows.length)
    return empty(
      "No lives of buffers.",
      "Record each allocation with its address: profile_memory=True of torch.profiler. Of JAX and TensorFlow a profile of the device has the buffers of its programs.",
    );
  const bars = barsOf(lives);
  const isTime = lives.unit === "ns";
  const axis = isTime ? timeAxis(Math.max(...bars.map((bar) => bar.to))) : { scale: 1, unit: "instruction" };
  const { scale: bytes, unit } = sizeAxis(bars.reduce((sum, bar) => sum + bar.bytes, 0));
  const kinds = [...new Set(bars.map((bar) => bar.kind))];
  const first = lives.curve[0]?.[0] ?? 0;
  const when = (/** @type {number} */ at) => (isTime ? duration(at) : `instruction ${count(at)}`);
  return figure({
    title: `Lives of the buffers at the peak of ${name}`,
    unit: `${unit} over ${isTime ? axis.unit : "the instructions of the program"}`,
    help: "report/memory",
    height: 360,
    note: `A bar is as high as the buffer is large, and lasts from its allocation to its release. The line is the peak.${lives.left_out ? ` ${many(lives.left_out, "smaller buffer")} (${size(lives.left_bytes)}) left out.` : ""}`,
    draw: (colour) => ({
      data: kinds.map((kind) => {
        const mine = bars.filter((bar) => bar.kind === kind);
        return {
          type: "bar",
          orientation: "h",
          name: kind,
          base: mine.map((bar) => bar.from / axis.scale),
          x: mine.map((bar) => Math.max(bar.to - bar.from, isTime ? 1 : 0.5) / axis.scale),
          y: mine.map((bar) => (bar.low + bar.bytes / 2) / bytes),
          width: mine.map((bar) => bar.bytes / bytes),
          marker: { color: colour(KINDS[kind] ?? "p-unexplained"), line: { color: colour("paper"), width: 0.5 } },
          text: mine.map((bar) =>
            [`${bar.kind}: ${size(bar.bytes)}`, clipped(bar.op ?? "op unknown", 140), clipped(bar.scope ?? "", 140), `${when(bar.from)} to ${bar.end === null ? "the end" : when(bar.to)}`].filter(Boolean).map(plain).join("<br>"),
          ),
          hoverinfo: "text",
          textposition: "none",
        };
      }),
      layout: {
        barmode: "overlay",
        showlegend: true,
        hovermode: "closest",
        xaxis: { title: { text: isTime ? `time since the first allocation [${axis.unit}]` : "instruction" } },
        yaxis: { title: { text: `live at the peak [${unit}]` } },
        shapes:
          lives.peak_at === null
            ? []
            : [{ type: "line", yref: "paper", y0: 0, y1: 1, x0: (lives.peak_at - first) / axis.scale, x1: (lives.peak_at - first) / axis.scale, line: { color: colour("error"), width: 1, dash: "dot" } }],
      },
    }),
  });
}
