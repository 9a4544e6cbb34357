// What ran on the device, kernel by kernel.

import { stepsOf } from "../ui/account.js";
import { fill } from "../ui/dom.js";
import { rowLinks } from "../ui/events.js";
import { figure, lettersBeside, plain, timeAxis } from "../ui/figure.js";
import { count, duration, share } from "../text/format.js";
import { clipped, shortName } from "../text/names.js";
import { helpLink } from "../shell/help.js";
import { follow } from "../shell/place.js";
import { empty } from "../shell/notice.js";
import { facts, pageHead } from "../ui/pieces.js";
import { boundName, rooflineChart } from "../ui/roofline.js";
import { serverTable } from "../ui/servertable.js";

const TOP = 15;

/** @type {import("../types").Page} */
export const page = { name: "kernels", title: "Kernels", render };

/** @param {HTMLElement} root @param {import("../types").Context} context */
async function render(root, context) {
  const report = await context.report();
  const { kernels, precision, roofline } = report;
  const steps = stepsOf(report);
  if (!kernels.total) {
    fill(
      root,
      pageHead("Kernels", "page/kernels"),
      empty(
        "No kernels were recorded.",
        "The run used no GPU or TPU, or its work was not recorded: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] in torch.profiler; jax.profiler.trace and tf.profiler record it where CUPTI or the TPU driver may. The Doctor page says which. A TPU's programs are on the Ops page.",
      ),
    );
    return;
  }
  fill(
    root,
    pageHead("Kernels", "page/kernels"),
    facts([
      ["kernels", count(kernels.total)],
      [
        "on tensor cores",
        precision.tensor_core_share === null ? null : `${share(precision.tensor_core_share)} of compute time`,
      ],
      [
        "could be on tensor cores",
        precision.eligible_share === null ? null : `${share(precision.eligible_share)} of compute time`,
      ],
      ["of unknown precision", precision.unknown_share ? share(precision.unknown_share) : null],
    ]),
    top(context, kernels.rows.slice(0, TOP), kernels.total),
    serverTable(context, {
      name: "kernels",
      help: helpLink("report/kernels"),
      title: "All kernels",
      why: "No kernels were recorded.",
      rowTip: "Enter or click: its calls in the trace",
      to: rowLinks(context, "kernel"),
      perStep: steps && { steps, columns: ["total_ns"] },
    }),
    roofline?.parts.length ? compute(context, roofline, steps) : null,
  );
}

/**
 * What the kernels' work needs at best, and where the rest is lost.
 * @param {import("../types").Context} context @param {import("../types").Report["roofline"]} roofline @param {number | null} steps
 */
function compute(context, roofline, steps) {
  const known = roofline.known_share === null ? null : `${share(roofline.known_share)} of compute time`;
  return [
    facts([
      ["work is known of", known],
      ["HFU", roofline.hfu === null ? null : share(roofline.hfu)],
      ["MFU", roofline.mfu === null ? null : share(roofline.mfu)],
    ]),
    rooflineChart(context, roofline),
    serverTable(context, {
      name: "compute",
      prefix: "compute-",
      help: helpLink("report/roofline"),
      title: "Where compute goes",
      why: "No kernels ran inside the steps.",
      rowTip: "Enter or click: the kernels in the trace",
      to: rowLinks(context, "compute", "reason"),
      perStep: steps && { steps, columns: ["ns"] },
    }),
    serverTable(context, {
      name: "roofline",
      prefix: "roofline-",
      write: { bound: boundName },
      help: helpLink("report/roofline"),
      title: "Classes and ops against their bound",
      why: "No kernels ran inside the steps.",
      rowTip: "Enter or click: the kernels in the trace",
      to: (row) => rowLinks(context, "roofline", "class", row.op === null ? [] : ["op"])(row),
      perStep: steps && { steps, columns: ["time_ns", "ideal_ns", "flops", "bytes"] },
    }),
  ];
}

/** @param {import("../types").Context} context @param {Record<string, any>[]} rows @param {number} total */
function top(context, rows, total) {
  const { scale, unit } = timeAxis(Math.max(...rows.map((row) => row.total_ns), 1));
  const kinds = [...new Set(rows.map((row) => String(row.precision)))];
  return figure({
    title: rows.length < total ? `The ${rows.length} longest kernels` : "Kernels by time",
    unit: `${unit}, summed over the steps; coloured by precision`,
    help: "report/kernels",
    height: Math.max(170, 84 + 24 * rows.length),
    draw: (colour) => ({
      data: kinds.map((kind) => {
        const mine = rows.filter((row) => String(row.precision) === kind);
        return {
          type: "bar",
          orientation: "h",
          name: kind === "none" ? "no arithmetic" : kind,
          x: mine.map((row) => row.total_ns / scale),
          y: mine.map((row) => rows.indexOf(row)),
          marker: {
            color: colour(`q-${kind}`),
            pattern: {
              shape: mine.map((row) => (row.tensor_cores ? "/" : "")),
              fillmode: "overlay",
              size: 6,
              solidity: 0.15,
            },
          },
          text: mine.map(
            (row) =>
              `${plain(clipped(shortName(row.name), 140))}<br>${duration(row.total_ns)} (${share(row.share ?? 0)}), ${count(row.calls)} calls of ${duration(row.mean_ns)}<br>op: ${plain(clipped(row.op ?? "unknown", 140))}${row.tensor_cores ? "<br>on tensor cores" : ""}`,
          ),
          hoverinfo: "text",
          textposition: "none",
        };
      }),
      layout: {
        barmode: "stack",
        showlegend: true,
        margin: { l: 10, r: 16, t: 30, b: 42 },
        xaxis: { title: { text: `total time [${unit}]` } },
        yaxis: {
          autorange: "reversed",
          tickvals: rows.map((_, at) => at),
          ticktext: rows.map((row) => plain(clipped(shortName(row.name), lettersBeside(48)))),
        },
      },
    }),
    note: `${rows.some((row) => row.tensor_cores) ? "Hatched bars ran on tensor cores. " : ""}Click a bar to see the calls in the trace.`,
    onClick: (event) => follow(rowLinks(context, "kernel")(rows[event.points[0].y])),
  });
}
