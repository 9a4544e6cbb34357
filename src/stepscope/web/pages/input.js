// The input pipeline: how much of the step it takes, how much of that the device waits for, and which stage is slow.

import { fill, h } from "../ui/dom.js";
import { eventsLink, openEvents, rowLinks } from "../ui/events.js";
import { figure, lettersBeside, plain, timeAxis } from "../ui/figure.js";
import { ofSteps } from "../text/devices.js";
import { duration, share } from "../text/format.js";
import { clipped, shortName } from "../text/names.js";
import { helpLink } from "../shell/help.js";
import { empty } from "../shell/notice.js";
import { facts, pageHead } from "../ui/pieces.js";
import { serverTable } from "../ui/servertable.js";

const TOP = 15;
const KINDS = /** @type {Record<string, string>} */ ({
  read: "p-io",
  preprocess: "p-python",
  batch: "p-compile",
  copy: "p-copy",
  wait: "p-input",
  other: "p-device_gap",
});

/** @type {import("../types").Page} */
export const page = { name: "input", title: "Input pipeline", render };

/** @param {HTMLElement} root @param {import("../types").Context} context */
async function render(root, context) {
  const report = await context.report();
  const { input, findings, device } = report;
  const finding = findings.find((each) => each.code === "input-bound");
  const head = [
    pageHead("Input pipeline", "page/input"),
    input.verdict ? h("p", { class: "verdict" }, input.verdict) : null,
  ];
  if (!input.stages.length) {
    fill(
      root,
      ...head,
      empty(
        "No stage of an input pipeline was recorded.",
        "Either the loop makes its data without a loader, or the profile was recorded without the host's events. Wrap the code that makes a batch with stepscope.annotate to see it here.",
      ),
    );
    return;
  }
  fill(
    root,
    ...head,
    facts([
      ["in the loader", `${share(input.share)} ${ofSteps(report)}`],
      [`the ${device.busy_share === null ? "step" : "device"} waits for it`, `${share(input.exposed_share)} ${ofSteps(report)}`],
    ]),
    finding
      ? h(
          "div",
          { class: "problem warning" },
          h("h3", {}, h("a", { href: eventsLink(context, "finding", finding.code) }, finding.title)),
          h("p", {}, finding.detail),
          h("p", { class: "fix" }, finding.fix),
        )
      : null,
    stages(context, input.stages.slice(0, TOP)),
    serverTable(context, {
      name: "input",
      help: helpLink("report/input"),
      title: "Stages",
      why: "No stage was recorded.",
      rowTip: "Enter or click: its events in the trace",
      to: rowLinks(context, "stage"),
    }),
  );
}

/** @param {import("../types").Context} context @param {import("../types").Report["input"]["stages"]} rows */
function stages(context, rows) {
  const { scale, unit } = timeAxis(Math.max(...rows.map((row) => row.self_ns), 1));
  const kinds = [...new Set(rows.map((row) => row.kind))];
  return figure({
    title: "Time in each stage itself",
    unit: `${unit}, summed over the steps`,
    help: "report/input",
    height: Math.max(160, 78 + 24 * rows.length),
    draw: (colour) => ({
      data: kinds.map((kind) => {
        const mine = rows.filter((row) => row.kind === kind);
        return {
          type: "bar",
          orientation: "h",
          name: kind,
          x: mine.map((row) => row.self_ns / scale),
          y: mine.map((row) => rows.indexOf(row)),
          marker: { color: colour(KINDS[kind] ?? "p-device_gap") },
          text: mine.map((row) =>
            plain(
              `${clipped(row.name, 120)}\n${kind}: ${duration(row.self_ns)} itself, ${duration(row.total_ns)} in all, ${row.calls} calls`,
            ).replaceAll("\n", "<br>"),
          ),
          hoverinfo: "text",
          textposition: "none",
        };
      }),
      layout: {
        barmode: "stack",
        margin: { l: 10, r: 16, t: 30, b: 42 },
        xaxis: { title: { text: `self time [${unit}]` } },
        yaxis: {
          autorange: "reversed",
          tickvals: rows.map((_, at) => at),
          ticktext: rows.map((row) => plain(clipped(shortName(row.name), lettersBeside(44)))),
        },
      },
    }),
    note: "Click a bar to see its events in the trace.",
    onClick: (event) => openEvents(context, "stage", rows[event.points[0].y].name),
  });
}
