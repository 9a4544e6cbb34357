// How long each step took, which are outliers, and where in the trace to look at them.

import { openStep, ownRows, stepBars } from "../ui/account.js";
import { rowLinks, stepLink } from "../ui/events.js";
import { fill } from "../ui/dom.js";
import { figure, timeAxis } from "../ui/figure.js";
import { count, duration, share, times } from "../text/format.js";
import { whyNone } from "../text/nosteps.js";
import { helpLink } from "../shell/help.js";
import { empty } from "../shell/notice.js";
import { facts, pageHead } from "../ui/pieces.js";
import { serverTable } from "../ui/servertable.js";

const BOXES = 16; // ranks

/** @type {import("../types").Page} */
export const page = { name: "steps", title: "Steps", render };

/** @param {HTMLElement} root @param {import("../types").Context} context */
async function render(root, context) {
  const report = await context.report();
  const { steps } = report;
  if (!steps.rows.length) {
    fill(
      root,
      pageHead("Steps", "page/steps"),
      empty("No steps.", whyNone(report)),
    );
    return;
  }
  const first = Math.min(...steps.rows.map((row) => row.start_ns));
  const own = ownRows(report, context.rank);
  fill(
    root,
    pageHead("Steps", "page/steps"),
    facts([
      ["steps", steps.source === "whole" ? "none: the whole recording" : count(steps.count)],
      ["found by", `${steps.source} ${steps.name ?? ""}`.trim()],
      ["confidence", steps.confidence ?? null],
      ["covers", typeof steps.covers === "number" ? `${share(steps.covers)} of the recorded device time` : null],
      ["warm-up", steps.warm_ups ? `${count(steps.warm_ups)} × ${steps.warm_up}, left out` : null],
      ["median", written(steps.median_ns)],
      ["mean", written(steps.mean_ns)],
      ["p10", written(steps.p10_ns)],
      ["p90", written(steps.p90_ns)],
      ["shortest", written(steps.min_ns)],
      ["longest", written(steps.max_ns)],
      ["outliers", steps.outliers ? count(steps.outliers) : "none"],
      ["pieces at the ends", steps.partial ? `${count(steps.partial)}, left out` : null],
      [
        "with the profiler a step takes",
        steps.inflation && steps.inflation >= 1.02
          ? `${times(steps.inflation)} as long (${steps.inflation_source ?? "measured"})`
          : null,
      ],
    ]),
    stepBars(report, context, { rank: context.rank, title: "Every step and its account" }),
    distribution(context, own),
    serverTable(context, {
      name: "steps",
      help: helpLink("report/steps"),
      title: "All steps",
      why: "No steps were found.",
      hide: same(report.steps.rows),
      write: { start_ns: (value) => `+${duration(Number(value) - first)}` },
      rowTip: "Enter or click: what this step does, in the trace",
      to: (row) => stepLink(context, /** @type {any} */ (row)),
    }),
    report.phases.length
      ? serverTable(context, {
          name: "phases",
          prefix: "phases-",
          help: helpLink("report/phases"),
          title: "Phases of the step",
          why: "The program marks no phases.",
          rowTip: "Enter or click: its calls in the trace",
          to: rowLinks(context, "phase"),
        })
      : null,
  );
}

/** Columns that say the same in every row. @param {import("../types").StepRow[]} rows */
function same(rows) {
  const isOne = (/** @type {"rank" | "device"} */ key) => new Set(rows.map((row) => row[key])).size < 2;
  const found = rows.some((row) => row.partial || row.outlier) ? [] : ["note"];
  return [...found, ...(isOne("rank") ? ["rank"] : []), ...(isOne("device") ? ["device"] : [])];
}

/** @param {number | null} ns */
function written(ns) {
  return ns === null ? null : duration(ns);
}

/** A box with every step as a point. @param {import("../types").Context} context @param {import("../types").StepRow[]} rows */
function distribution(context, rows) {
  const { scale, unit } = timeAxis(Math.max(...rows.map((row) => row.duration_ns), 1));
  const ranks = [...new Set(rows.map((row) => row.rank))];
  const groups = ranks.slice(0, BOXES);
  const several = groups.length > 1;
  const byRank = groups.map((rank) => rows.filter((row) => row.rank === rank && !row.partial));
  return figure({
    title: "Distribution of step times",
    unit,
    help: "report/steps",
    height: Math.max(170, 60 + 44 * groups.length),
    note: `${ranks.length > groups.length ? `The first ${groups.length} of ${count(ranks.length)} ranks; choose one in the header to see it. ` : ""}The box holds the middle half of the steps, the line in it is the median. Outliers are red; click one to see it in the trace. Partial steps are left out.`,
    draw: (colour) => ({
      data: byRank.map((mine, at) => ({
        type: "box",
        orientation: "h",
        name: several ? `rank ${groups[at]}` : "steps",
        x: mine.map((row) => row.duration_ns / scale),
        y: mine.map(() => (several ? `rank ${groups[at]}` : "steps")),
        boxpoints: "all",
        jitter: 0.5,
        pointpos: 0,
        line: { color: colour("accent"), width: 1 },
        fillcolor: "rgba(0,0,0,0)",
        marker: { size: 7, color: colour("accent"), opacity: 0.75 },
        selectedpoints: mine.flatMap((row, place) => (row.outlier ? [place] : [])),
        selected: { marker: { color: colour("error"), opacity: 1 } },
        unselected: { marker: { opacity: 0.75 } },
        text: mine.map((row) => `step ${row.step}: ${duration(row.duration_ns)}${row.outlier ? ", an outlier" : ""}`),
        hoverinfo: "text",
        hoveron: "points",
        showlegend: false,
      })),
      layout: {
        xaxis: { title: { text: `step time [${unit}]` } },
        yaxis: { automargin: true, type: "category", autorange: "reversed" },
        margin: { l: 62, r: 16, t: 8, b: 44 },
      },
    }),
    onClick: (event) => {
      const point = event.points[0];
      openStep(context, byRank[point.curveNumber][point.pointNumber ?? point.pointIndex]);
    },
  });
}
