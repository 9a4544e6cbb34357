// The table of runs: sorted, filtered, ticked; rows stay while they say the same, so that clicks and focus survive a new list.

import { arrange, fill, h } from "../../ui/dom.js";
import { sorted } from "../../ui/tables.js";
import { ago, count, duration, many, moment, share, size, speedup } from "../../text/format.js";
import { nothingFound } from "../../shell/notice.js";
import { errorWords, leftOut, stateWords } from "../../shell/runlist.js";
import { changeShown, changeWords, gainOf, hasWords, tipOf } from "./lines.js";

/** @typedef {import("./lines.js").Line} Line */
/** @typedef {{ key: Extract<keyof Line, string>, title: string, numeric?: boolean, always?: boolean, cell: (line: Line) => HTMLElement }} Column */

const SHORT_COMMIT = 10;
const LONG = 30; // letters: longer words may have several lines

/** @type {Column[]} */
const COLUMNS = [
  { key: "step", title: "step", numeric: true, always: true, cell: (line) => figure(line, line.step, duration, "n") },
  { key: "grown", title: "change", numeric: true, cell: changeCell },
  { key: "verdict", title: "verdict", always: true, cell: (line) => figure(line, line.verdict, String) },
  { key: "finding", title: "first finding", always: true, cell: findingCell },
  { key: "memory", title: "peak memory", numeric: true, cell: memoryCell },
  { key: "device", title: "device", cell: (line) => figure(line, line.device, String) },
  { key: "framework", title: "framework", cell: (line) => figure(line, line.framework, String) },
  { key: "when", title: "recorded", always: true, cell: (line) => h("td", { "data-tip": line.when === null ? null : moment(line.when) }, line.when === null ? "–" : ago(line.when)) },
  { key: "commit", title: "commit", cell: (line) => h("td", { class: "mono" }, line.commit?.slice(0, SHORT_COMMIT) ?? "–") },
];

/** A figure; "…" where it is not computed yet. @template T @param {Line} line @param {T | null} value @param {(value: T) => string} write @param {string} [align] */
function figure(line, value, write, align = "") {
  if (value !== null) return h("td", { class: align || (typeof value === "string" && value.length > LONG ? "words" : null) }, write(value));
  if (line.figures || line.run.state === "failed") return h("td", { class: `none ${align}` }, "–");
  const tip = line.isWaiting ? "Being computed." : "Open the run to compute it.";
  return h("td", { class: `none ${align}`, "data-tip": tip }, "…");
}

/** @param {Line} line */
function changeCell(line) {
  if (!line.change) return h("td", { class: "none n" }, "–");
  const mark = { slower: "worse", faster: "better", same: "none" }[line.change.verdict];
  return h("td", { class: `n ${mark}`, "data-tip": changeWords(line.change), tabindex: 0 }, changeShown(line.change));
}

/** @param {Line} line */
function findingCell(line) {
  const found = line.figures?.finding;
  if (!found) return figure(line, line.figures ? "none" : null, String);
  const gain = line.figures ? gainOf(line.figures) : "";
  const likely = gain ? speedup({ low: found.mid, mid: found.mid, high: found.mid }) : "";
  return h("td", { class: "words", "data-tip": gain ? `Speed-up: ${gain}` : null }, found.title, likely ? h("small", { class: "sub" }, ` ${likely}`) : null);
}

/** @param {Line} line */
function memoryCell(line) {
  const capacity = line.figures?.capacity_bytes;
  const cell = figure(line, line.memory, size, "n");
  if (capacity && line.memory !== null) cell.dataset.tip = `${share(line.memory / capacity)} of ${size(capacity)}`;
  return cell;
}

/**
 * @param {object} options
 * @param {import("../../types").Context} options.context
 * @param {Set<string>} options.chosen
 * @param {() => void} options.onChoose
 * @param {() => Line[]} options.lines
 */
export function runTable(options) {
  const { context } = options;
  let key = context.params.get("sort") ?? "when";
  let falls = context.params.get("order") !== "up";
  let isSlower = context.params.get("only") === "slower";
  const search = h("input", {
    type: "search",
    placeholder: "search runs",
    "aria-label": "search runs",
    value: context.params.get("search") ?? "",
    oninput: () => {
      context.setParams({ search: search.value }, { replace: true });
      draw();
    },
  });
  const slower = h(
    "button",
    {
      type: "button",
      "aria-pressed": isSlower,
      "data-tip": "Runs that are slower than the run before of the same job, by more than the gate's noise.",
      onclick: () => {
        isSlower = !isSlower;
        slower.setAttribute("aria-pressed", String(isSlower));
        context.setParams({ only: isSlower ? "slower" : null }, { replace: true });
        draw();
      },
    },
    "regressions only",
  );
  const counted = h("small", {});
  const body = h("tbody");
  const heads = h("tr", {});
  const frame = h("div", { class: "table" }, h("table", {}, h("thead", {}, heads), body));
  const left = h("div", {});
  const tools = h("div", { class: "tools" }, search, slower, counted, h("span", { class: "grow" }));
  const element = h("div", { class: "of runs" }, tools, frame, left);
  /** Rows by what they show. @type {Map<string, HTMLTableRowElement>} */
  let rows = new Map();
  let headed = "";
  let below = "";

  /** @param {string} name @param {boolean} isNumeric */
  const sortBy = (name, isNumeric) => {
    falls = key === name ? !falls : isNumeric;
    key = name;
    context.setParams({ sort: key === "when" ? null : key, order: falls ? null : "up" }, { replace: true });
    draw();
  };
  /** @param {Column[]} columns */
  const drawHeads = (columns) => {
    const wanted = JSON.stringify([columns.map((column) => column.key), key, falls]);
    if (wanted === headed) return;
    const focused = heads.contains(document.activeElement) ? document.activeElement?.textContent : null;
    headed = wanted;
    const all = [{ key: "title", title: "run", numeric: false }, ...columns];
    fill(heads, h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "compare")), all.map(head), h("th", { scope: "col" }, "state"));
    for (const button of heads.querySelectorAll("button")) if (button.textContent === focused) button.focus();
  };
  /** @param {{ key: string, title: string, numeric?: boolean }} column */
  const head = (column) =>
    h(
      "th",
      { scope: "col", class: column.numeric ? "n" : null, "aria-sort": column.key === key ? (falls ? "descending" : "ascending") : null },
      h("button", { type: "button", onclick: () => sortBy(column.key, Boolean(column.numeric) || column.key === "when") }, column.title),
    );
  const draw = () => {
    const { runs, skipped, scanning } = context.watch.all();
    const lines = options.lines();
    const columns = COLUMNS.filter((column) => column.always || lines.some((line) => line[column.key] !== null));
    const found = sorted(lines.filter((line) => hasWords(line, search.value) && (!isSlower || line.change?.verdict === "slower")), key, falls);
    slower.hidden = !isSlower && !lines.some((line) => line.change?.verdict === "slower");
    counted.textContent = `${found.length === runs.length ? many(runs.length, "run") : `${count(found.length)} of ${many(runs.length, "run")}`}${scanning ? ", still looking …" : ""}`;
    drawHeads(columns);
    rows = new Map(
      found.map((line) => {
        const shown = JSON.stringify([line, line.when === null ? "" : ago(line.when), columns.length]);
        return [shown, rows.get(shown) ?? row(/** @type {Line} */ (line), columns)];
      }),
    );
    arrange(body, [...rows.values()]);
    if (!found.length) {
      const why = scanning ? "Looking for profiles …" : runs.length ? "No run matches." : "No profile was found.";
      fill(body, h("tr", {}, h("td", { class: "none", colspan: columns.length + 3 }, why)));
    }
    const isEmpty = !runs.length && !scanning;
    frame.hidden = isEmpty;
    const said = JSON.stringify([isEmpty, skipped]);
    if (said !== below) fill(left, isEmpty ? nothingFound() : null, skipped.length ? leftOut(skipped) : null);
    below = said;
  };
  /** @param {Line} line @param {Column[]} columns */
  const row = (line, columns) => {
    const error = errorWords(line.run);
    const box = h("input", {
      type: "checkbox",
      "aria-label": `compare ${line.run.name}`,
      checked: options.chosen.has(line.id),
      onchange: () => {
        if (!options.chosen.delete(line.id)) options.chosen.add(line.id);
        options.onChoose();
      },
    });
    return h(
      "tr",
      {},
      h("td", {}, box),
      h("td", { class: "title" }, h("a", { href: context.link("overview", { run: line.id, rank: null }), "data-tip": tipOf(line) }, line.title)),
      columns.map((column) => column.cell(line)),
      h("td", {}, h("span", { class: `state ${line.run.state}`, "data-tip": error || null, tabindex: error ? 0 : null }, stateWords(line.run))),
    );
  };
  return { element, tools, draw };
}
