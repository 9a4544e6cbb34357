// The figure of thousands of ranks: how far they are from their peers.

import { figure } from "../../ui/figure.js";
import { follow } from "../../shell/place.js";
import { stepLink } from "../../ui/events.js";
import { share } from "../../text/format.js";
import { gridOf } from "./deviation.js";

/** @typedef {import("./deviation.js").Cell} Cell */

/**
 * @param {import("../../types").Report} report @param {import("../../types").Context} context
 * @param {import("../../types").StepRow[]} rows @param {(row: import("../../types").StepRow) => number} measure
 */
export function peersFigure(report, context, rows, measure) {
  const values = rows.map((row) => ({ rank: row.rank, step: row.step, value: measure(row) }));
  const roles = (report.job?.roles ?? []).map((role) => role.ranks);
  const grid = gridOf(values, roles, report.profile.hosts.length);
  return figure({
    title: "Ranks against their peers",
    unit: "own work against the median of the ranks that do the same in the same step",
    help: "report/collectives",
    height: Math.max(240, Math.min(900, 110 + 14 * grid.rows.length)),
    note: `A cell shows the rank of its row that is farthest from its peers; click it to see that rank's step in the trace.${onsetWords(report)}`,
    draw: (colour) => ({
      data: [
        {
          type: "heatmap",
          x: grid.columns.map((column) => column.label),
          y: grid.rows.map((row) => row.label),
          z: grid.cells.map((line) => line.map((cell) => (cell ? 100 * cell.deviation : null))),
          text: grid.cells.map((line, at) => line.map((cell, place) => words(cell, grid, at, place))),
          hoverinfo: "text",
          colorscale: [
            [0, colour("accent")],
            [0.5, colour("card")],
            [1, colour("error")],
          ],
          zmin: -100 * grid.limit,
          zmax: 100 * grid.limit,
          colorbar: { title: { text: "% above the median", side: "right" }, thickness: 12, outlinewidth: 0 },
        },
      ],
      layout: {
        xaxis: { title: { text: "step" }, type: "category", nticks: 24, showgrid: false },
        yaxis: { autorange: "reversed", type: "category", showgrid: false },
        margin: { l: 150, r: 10, t: 8, b: 44 },
      },
    }),
    onClick: (event) => {
      const [at, place] = event.points[0].pointIndex;
      const rank = grid.cells[at][place]?.rank;
      const row = rows.find((each) => each.rank === rank && grid.columns[place].steps.includes(each.step));
      if (row) follow(stepLink(context, row, null));
    },
  });
}

/** @param {Cell} cell @param {import("./deviation.js").Grid} grid @param {number} at @param {number} place */
function words(cell, grid, at, place) {
  const where = `${grid.rows[at].label}, step ${grid.columns[place].label}`;
  if (!cell) return `${where}: not recorded`;
  const way = cell.deviation < 0 ? "less" : "more";
  return `${where}: rank ${cell.rank} works ${share(Math.abs(cell.deviation))} ${way} than its peers`;
}

/** Which ranks became slow during the recording, and when. @param {import("../../types").Report} report */
function onsetWords(report) {
  const begun = (report.job?.causes ?? []).filter((cause) => cause.since !== null && cause.ranks.length);
  return begun.map((cause) => ` Rank ${cause.ranks[0]} is slow from step ${cause.since} on.`).join("");
}
