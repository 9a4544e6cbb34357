// The step time of each job over its runs.

import { figure, plain, timeAxis } from "../../ui/figure.js";
import { duration, moment } from "../../text/format.js";
import { changeWords, trendsOf } from "./lines.js";

const MOST_JOBS = 8; // more colours look alike
const COLOURS = ["p-compute", "p-input", "p-collective", "p-copy", "p-compile", "p-io", "p-python", "p-sync"];

/** @typedef {import("./lines.js").Line} Line */

/** A curve for each job with several runs; null where there is none. @param {import("../../types").Context} context @param {Line[]} lines */
export function trend(context, lines) {
  const jobs = trendsOf(lines);
  const shown = jobs.slice(0, MOST_JOBS);
  if (!shown.length) return null;
  const { scale, unit } = timeAxis(Math.max(...shown.flat().map((line) => line.step ?? 0)));
  return figure({
    title: "Step time over the runs of a job",
    unit: `${unit} per step`,
    help: "page/runs",
    height: 300,
    note: [
      "Red: slower than the run before by more than the gate's noise. Click a point to open the run.",
      jobs.length > shown.length ? `The ${shown.length} jobs of ${jobs.length} that ran last.` : "",
    ]
      .filter(Boolean)
      .join(" "),
    draw: (colour) => ({
      data: shown.map((job, at) => curve(job, scale, colour(COLOURS[at]), colour("error"))),
      layout: {
        showlegend: true,
        hovermode: "closest",
        xaxis: { type: "date" },
        yaxis: { title: { text: `step [${unit}]` }, rangemode: "tozero" },
      },
    }),
    onClick: (event) => {
      const line = shown[event.points[0].curveNumber]?.[event.points[0].pointNumber];
      if (line) context.go("overview", { run: line.id, rank: null });
    },
  });
}

/** @param {Line[]} job @param {number} scale @param {string} own @param {string} slower */
function curve(job, scale, own, slower) {
  const isSlower = (/** @type {Line} */ line) => line.change?.verdict === "slower";
  return {
    type: "scatter",
    mode: "lines+markers",
    name: plain(job[0].job),
    x: job.map((line) => new Date((line.when ?? 0) / 1e6).toISOString()),
    y: job.map((line) => (line.step ?? 0) / scale),
    line: { color: own, width: 1.5 },
    marker: { color: job.map((line) => (isSlower(line) ? slower : own)), size: job.map((line) => (isSlower(line) ? 11 : 7)) },
    text: job.map((line) => plain([line.title, `${duration(line.step ?? 0)} per step`, line.change ? changeWords(line.change) : "", moment(line.when ?? 0)].filter(Boolean).join("\n")).replaceAll("\n", "<br>")),
    hoverinfo: "text",
  };
}
