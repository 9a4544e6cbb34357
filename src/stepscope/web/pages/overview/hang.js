// Why the ranks hang, of flight-recorder dumps: where they are, what is wrong in each group, and the stacks.

import { spans } from "../../text/format.js";
import { h } from "../../ui/dom.js";
import { heading } from "../../ui/pieces.js";
import { table } from "../../ui/tables.js";

/** @typedef {import("../../types").HangCall} HangCall */

/** @type {Record<string, string>} */
const STATES = { waits: "waits in", differs: "called instead", outside: "last was in", "no dump": "no dump" };

/** What the overview shows of dumps, which have no steps. @param {import("../../types").Report} report */
export function hang(report) {
  const { groups, ranks } = report.hang;
  return [
    heading("Where the ranks are", "report/hang"),
    ranks.length ? callTable(ranks) : null,
    groups.map((group) => [
      h("h3", {}, `Group ${group.name}: collective number ${group.sequence}`),
      h("p", {}, group.sentence),
      group.calls.length > 1 ? callTable(group.calls) : null,
    ]),
    ranks.some((call) => call.stack.length) ? heading("Stacks", "report/hang") : null,
    ranks.filter((call) => call.stack.length).map(stackOf),
  ];
}

/** A row of the table. @param {HangCall} call */
export function rowOf(call) {
  const place = call.place === null ? null : call.place.replaceAll("\\", "/").split("/").at(-1);
  return { ...call, ranks: spans(call.ranks), state: STATES[call.state] ?? call.state, place };
}

/** @param {HangCall[]} calls */
function callTable(calls) {
  const columns = [
    { key: "ranks", title: "ranks" },
    { key: "state", title: "state" },
    { key: "op", title: "collective" },
    { key: "sequence", title: "number", kind: "number" },
    { key: "group", title: "group" },
    { key: "sizes", title: "sizes" },
    { key: "dtype", title: "dtype" },
    { key: "function", title: "function" },
    { key: "place", title: "at" },
  ];
  return table({ columns, rows: calls.map(rowOf) });
}

/** @param {HangCall} call */
function stackOf(call) {
  const title = `rank${call.ranks.length > 1 ? "s" : ""} ${spans(call.ranks)}: ${STATES[call.state] ?? call.state} ${call.op ?? ""}`;
  return h("details", { open: true }, h("summary", {}, title), h("pre", { class: "lines", tabindex: 0, "aria-label": title }, call.stack.join("\n")));
}
