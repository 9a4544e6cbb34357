// Any question about the run's tables: one SELECT, bounded in time, memory and rows.

import { isLeft } from "../shell/api.js";
import { csvText } from "../text/csv.js";
import { fill, h } from "../ui/dom.js";
import { eventsLink } from "../ui/events.js";
import { count, many } from "../text/format.js";
import { helpLink } from "../shell/help.js";
import { latest } from "../shell/latest.js";
import { failure } from "../shell/notice.js";
import { pageHead } from "../ui/pieces.js";
import { table } from "../ui/tables.js";

const EXAMPLES = /** @type {[string, string][]} */ ([
  [
    "Device time by op",
    "SELECT op.name AS op, COUNT(*) AS kernels, SUM(work.dur_ns) AS device_ns\nFROM kernels\nJOIN events AS work ON work.id = kernels.event\nJOIN events AS op ON op.id = kernels.op\nGROUP BY op.name ORDER BY device_ns DESC LIMIT 20",
  ],
  ["Longest events", "SELECT id, name, kind, start_ns, dur_ns FROM events ORDER BY dur_ns DESC LIMIT 20"],
  [
    "Time by kind",
    "SELECT kind, COUNT(*) AS events, SUM(dur_ns) AS total_ns FROM events GROUP BY kind ORDER BY total_ns DESC",
  ],
  ["Tracks", "SELECT * FROM tracks"],
]);

const MOMENTS = /(^|_)(start|end|time|unix)_ns$/; // counted from far back, so that a unit would hide what differs

/** @type {import("../types").Page} */
export const page = { name: "sql", title: "SQL", render };

/** @param {HTMLElement} root @param {import("../types").Context} context */
function render(root, context) {
  const text = h("textarea", {
    rows: 8,
    spellcheck: "false",
    "aria-label": "query",
    value: context.params.get("query") ?? EXAMPLES[0][1],
  });
  const told = h("div", { "aria-live": "polite" });
  const only = latest();
  const go = h("button", { type: "button", class: "main-action", onclick: () => run() }, "Run");
  const run = async () => {
    const query = text.value;
    context.setParams({ query }, { replace: true });
    go.disabled = true;
    fill(told, h("p", { class: "sub wait" }, "Running …"));
    const began = performance.now();
    try {
      const answer = await only(context.api.post(`api/runs/${context.run}/sql`, { query }));
      fill(told, result(answer, performance.now() - began, eventOf(context, answer, query)));
    } catch (error) {
      if (isLeft(error)) return; // an example was chosen meanwhile, or the page was left
      fill(told, failure(error));
    }
    go.disabled = false;
  };
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void run();
  });
  fill(
    root,
    pageHead("SQL", "page/sql"),
    h(
      "p",
      { class: "sub" },
      "One SELECT over the run's tables: events, links, tracks, ops, kernels, copies, memory, collectives, counters, modules, traces, problems. ",
      helpLink("tables", "which columns do they have?"),
    ),
    h(
      "div",
      { class: "row" },
      h("span", { class: "sub" }, "examples"),
      EXAMPLES.map(([title, query]) =>
        h(
          "button",
          {
            type: "button",
            onclick: () => {
              text.value = query;
              void run();
            },
          },
          title,
        ),
      ),
    ),
    text,
    h(
      "div",
      { class: "row", style: { margin: "10px 0 16px" } },
      go,
      h("small", { class: "sub" }, "Ctrl+Enter runs it. At most 20 seconds, 2 GiB and 1,000 rows."),
    ),
    told,
  );
  if (context.params.get("query")) void run();
}

/**
 * The event that a row is about: a column `event`, or the `id` of events; with several ranks only where the rank is a column, too.
 * @param {import("../types").Context} context @param {import("../types").TablePage} answer @param {string} query
 * @returns {((row: Record<string, any>) => string | null) | undefined}
 */
export function eventOf(context, answer, query) {
  const names = answer.columns.map((column) => column.name.toLowerCase());
  const ofEvents = /\bevents\b/i.test(query) && !/\btracks\b/i.test(query);
  const at = Math.max(names.indexOf("event"), names.indexOf("event_id"), ofEvents ? names.indexOf("id") : -1);
  const rank = names.indexOf("rank");
  if (at < 0 || (rank < 0 && (context.about?.ranks ?? 1) > 1)) return undefined;
  return (row) => (Number.isInteger(row[at]) ? eventsLink(context, "event", row[at], null, rank < 0 ? context.rank : row[rank]) : null);
}

/** @param {import("../types").TablePage & { truncated: boolean }} answer @param {number} ms @param {((row: Record<string, any>) => string | null) | undefined} to */
function result(answer, ms, to) {
  const columns = answer.columns.map((column, at) => ({
    key: String(at),
    title: column.title,
    kind: MOMENTS.test(column.name) ? "count" : column.kind,
  }));
  const rows = answer.rows.map((row) => Object.fromEntries(row.map((value, at) => [String(at), value])));
  const note = `${many(answer.total, "row")} in ${count(Math.round(ms))} ms${answer.truncated ? "; only the first are shown: add a LIMIT or a WHERE" : ""}`;
  if (!rows.length) return h("p", { class: "sub" }, `No rows, in ${count(Math.round(ms))} ms.`);
  return [
    h("p", { class: answer.truncated ? "cut" : "sub" }, `${note}${to ? "; a row opens its event in the trace" : ""}`),
    table({ columns, rows, all: true, tools: [csv(answer)], to }),
  ];
}

/** The result as a file, made here. @param {import("../types").TablePage} answer */
function csv(answer) {
  return h(
    "button",
    {
      type: "button",
      onclick: () => {
        const text = csvText(answer.columns, answer.rows);
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
        link.download = "query.csv";
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      },
    },
    "CSV",
  );
}
