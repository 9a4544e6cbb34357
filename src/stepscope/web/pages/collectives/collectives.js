// Communication: the operations, the ranks that wait for one another, and every rank's steps side by side.

import { ownRows } from "../../ui/account.js";
import { fill, h } from "../../ui/dom.js";
import { eventsLink, rowLinks, stepLink } from "../../ui/events.js";
import { figure, timeAxis } from "../../ui/figure.js";
import { hasSeveralDevices, ofSteps } from "../../text/devices.js";
import { duration, share } from "../../text/format.js";
import { helpLink } from "../../shell/help.js";
import { follow } from "../../shell/place.js";
import { empty, problem } from "../../shell/notice.js";
import { facts, pageHead } from "../../ui/pieces.js";
import { inOrder, part } from "../../text/parts.js";
import { serverTable } from "../../ui/servertable.js";
import { areMany } from "./deviation.js";
import { peersFigure } from "./peers.js";
import { waitBins } from "./waitbins.js";
import { clocksTable, waitsFigure, worstTable } from "./waits.js";

const OWN = "own";

/** @type {import("../../types").Page} */
export const page = { name: "collectives", title: "Communication", render };

/** @param {HTMLElement} root @param {import("../../types").Context} context */
async function render(root, context) {
  const report = await context.report();
  const { collectives } = report;
  const isOne = report.profile.ranks.length < 2;
  fill(
    root,
    pageHead("Communication and ranks", "page/collectives"),
    facts([
      [
        "not hidden behind compute",
        collectives.exposed_share === null ? null : `${share(collectives.exposed_share)} ${ofSteps(report)}${hasSeveralDevices(report) ? " on all devices" : ""}`,
      ],
      ["in all", collectives.kernel_share ? `${share(collectives.kernel_share)} of kernel time` : null],
    ]),
    straggler(report, context),
    isOne
      ? empty(
          "There is one rank here.",
          context.rank === null
            ? "The profile has the trace of a single rank, so there is nothing to compare it with. Record all ranks into one folder."
            : "One rank is chosen in the header: choose all ranks to compare them.",
        )
      : [heat(report, context), waitsFigure(report, context), waitBins(report)],
    collectives.rows.length
      ? serverTable(context, {
          name: "collectives",
          title: "By operation and group",
          prefix: "c.",
          help: helpLink("report/collectives"),
          rowTip: "Enter or click: its calls in the trace",
          to: rowLinks(context, "collective"),
        })
      : empty(
          "No collective operations were recorded.",
          "A single process, or a framework whose communication leaves no events.",
        ),
    collectives.ranks.length
      ? serverTable(context, {
          name: "collectives_ranks",
          title: "By rank",
          prefix: "r.",
          help: helpLink("report/collectives"),
          rowTip: "Enter or click: the collectives of this rank in the trace",
          to: (row) => eventsLink(context, "collective", "", null, row.rank),
        })
      : null,
    worstTable(report, context),
    clocksTable(report),
  );
}

/** @param {import("../../types").Report} report @param {import("../../types").Context} context */
function straggler(report, context) {
  const told = report.findings.find((finding) => finding.code === "straggler");
  if (told) {
    const link = h("a", { href: eventsLink(context, "finding", told.code) }, "see its collectives in the trace");
    return [problem("warning", told.title, told.detail, told.fix), h("p", {}, link)];
  }
  const found = report.collectives.straggler;
  if (!found) return null;
  const names = found.names.length ? ` (${found.names.slice(0, 3).join(", ")})` : "";
  return problem(
    "warning",
    `Rank ${found.rank} is the one that the others wait for`,
    `It arrives last at ${found.last} of ${found.matched} collectives${names}, ${duration(found.late_ns_per_step)} late per step: ${share(found.share)} of the steps' time. It held the others up most in ${found.steps_late} of ${found.steps} steps.`,
    found.always
      ? "The same rank every time: look for more work, slower hardware or a slower loader there."
      : "Not always the same rank: look for data of uneven size, and for pauses of the host.",
  );
}

/** Steps of ranks that wait for one another last equally long: what a rank does itself tells it apart. @param {import("../../types").StepRow} row */
function ownWork(row) {
  return Math.max(0, row.duration_ns - (row.parts.collective ?? 0) - (row.parts.host_collective ?? 0));
}

/** @param {import("../../types").Report} report @param {import("../../types").Context} context */
function heat(report, context) {
  const rows = ownRows(report);
  const ranks = [...new Set(rows.map((row) => row.rank))].sort((a, b) => a - b);
  if (areMany(ranks.length)) return peersFigure(report, context, rows, ownWork);
  const steps = [...new Set(rows.map((row) => row.step))].sort((a, b) => a - b);
  const found = new Map(rows.map((row) => [`${row.rank} ${row.step}`, row]));
  const parts = inOrder(report.breakdown).map((row) => row.part);
  const isMeasure = (/** @type {string | null} */ name) => name === "duration" || parts.includes(name ?? "");
  const asked = context.params.get("measure");
  let measure = asked !== null && isMeasure(asked) ? asked : OWN;
  const value = (/** @type {import("../../types").StepRow | undefined} */ row) => {
    if (!row) return null;
    if (measure === OWN) return ownWork(row);
    return measure === "duration" ? row.duration_ns : (row.parts[measure] ?? 0);
  };
  const select = h(
    "select",
    {
      "aria-label": "measure",
      onchange: () => {
        measure = select.value;
        context.setParams({ measure: measure === OWN ? null : measure });
        void drawing.redraw();
      },
    },
    h("option", { value: OWN }, "own work: the step without communication"),
    h("option", { value: "duration" }, "step time"),
    parts.map((name) => h("option", { value: name }, part(name).title)),
  );
  select.value = measure;
  const drawing = figure({
    title: "Every rank, every step",
    unit: "the stronger the colour, the longer",
    help: "report/collectives",
    height: Math.max(200, Math.min(700, 110 + 26 * ranks.length)),
    tools: [select],
    note: "Click a cell to see what that rank's step did, in the trace.",
    draw: (colour) => {
      const cells = ranks.map((rank) => steps.map((step) => value(found.get(`${rank} ${step}`))));
      const { scale, unit } = timeAxis(Math.max(...cells.flat().map((each) => each ?? 0), 1));
      return {
        data: [
          {
            type: "heatmap",
            x: steps.map(String),
            y: ranks.map((rank) => `rank ${rank}`),
            z: cells.map((line) => line.map((each) => (each === null ? null : each / scale))),
            text: cells.map((line, at) =>
              line.map((each, place) =>
                each === null ? "not recorded" : `rank ${ranks[at]}, step ${steps[place]}: ${duration(each)}`,
              ),
            ),
            hoverinfo: "text",
            colorscale: [
              [0, colour("card")],
              [1, colour(measure === "duration" || measure === OWN ? "accent" : `p-${measure}`)],
            ],
            zmin: 0,
            zmax: Math.max(...cells.flat().map((each) => each ?? 0), 1) / scale,
            colorbar: { title: { text: unit, side: "right" }, thickness: 12, outlinewidth: 0 },
            xgap: 1,
            ygap: 1,
          },
        ],
        layout: {
          xaxis: { title: { text: "step" }, type: "category", nticks: 24, showgrid: false },
          yaxis: { autorange: "reversed", type: "category", showgrid: false },
          margin: { l: 70, r: 10, t: 8, b: 44 },
        },
      };
    },
    onClick: (event) => {
      const row = found.get(`${ranks[event.points[0].pointIndex[0]]} ${steps[event.points[0].pointIndex[1]]}`);
      if (row) follow(stepLink(context, row, parts.includes(measure) ? measure : null));
    },
  });
  return drawing;
}
