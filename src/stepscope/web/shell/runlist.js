// The list of runs as the menu of the header, and what it shares with the page of runs: names, states, errors.

import { arrange, fill, h } from "../ui/dom.js";
import { ago, count, format, many } from "../text/format.js";
import { problem } from "./notice.js";

/** Whether all words are in the run's name, place or format. @param {import("../types").Run} run @param {string} words */
export function matches(run, words) {
  const text = `${run.name} ${run.place} ${run.format} ${run.id} ${run.state}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** What to call a run: its name, with as much of its place before it as tells it apart from others. @param {import("../types").Run} run @param {import("../types").Run[]} runs */
export function titleOf(run, runs) {
  if (!runs.some((each) => each.name === run.name && each.id !== run.id)) return run.name;
  const places = run.place.split("/").filter(Boolean);
  const called = (/** @type {import("../types").Run} */ each, /** @type {number} */ folders) =>
    [...each.place.split("/").filter(Boolean).slice(-folders), each.name].join("/");
  for (let folders = 1; folders <= places.length; folders += 1) {
    const title = called(run, folders);
    if (!runs.some((each) => each.id !== run.id && called(each, folders) === title)) return title;
  }
  return called(run, places.length);
}

/** @param {import("../types").Run} run */
export function stateWords(run) {
  if (run.state !== "loading") return run.state === "new" ? "not opened yet" : run.state;
  const progress = run.progress;
  if (!progress) return "loading";
  const share = progress.total ? ` ${Math.floor((100 * progress.done) / progress.total)} %` : "";
  return `${progress.stage || "loading"}${share}`;
}

/** @param {import("../types").Run} run */
export function errorWords(run) {
  if (!run.error) return "";
  return typeof run.error === "string"
    ? run.error
    : [run.error.what, run.error.where, run.error.fix].filter(Boolean).join("\n");
}

/**
 * @param {object} options
 * @param {import("./watch.js").Watch} options.watch
 * @param {string} options.current
 * @param {(run: string) => string} options.link
 */
export function runList(options) {
  const search = h("input", {
    type: "search",
    placeholder: "search runs",
    "aria-label": "search runs",
    oninput: () => draw(),
  });
  const told = h("small", {});
  const body = h("tbody");
  const heads = ["run", "format", "ranks", "changed", "state"];
  const table = h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((head) =>
          h("th", { scope: "col", class: head === "ranks" ? "n" : null }, head),
        ),
      ),
    ),
    body,
  );
  const frame = h("div", { class: "table" }, table);
  const element = h(
    "div",
    { class: "of runs" },
    h("div", { class: "tools" }, search, told),
    frame,
  );

  /** Rows by what they show: only those with something new are made again. @type {Map<string, HTMLTableRowElement>} */
  let rows = new Map();
  /** @param {import("../types").Run} run */
  const rowOf = (run) => {
    const title = titleOf(run, options.watch.runs());
    const key = JSON.stringify([run, title]);
    return /** @type {const} */ ([key, rows.get(key) ?? row(run, title, options)]);
  };
  const draw = () => {
    const { runs, scanning } = options.watch.all();
    const found = runs.filter((run) => matches(run, search.value));
    told.textContent = `${found.length === runs.length ? many(runs.length, "run") : `${count(found.length)} of ${many(runs.length, "run")}`}${scanning ? ", still looking …" : ""}`;
    rows = new Map(found.map(rowOf));
    arrange(body, [...rows.values()]);
    if (!found.length)
      fill(
        body,
        h(
          "tr",
          {},
          h(
            "td",
            { class: "none", colspan: heads.length },
            scanning ? "Looking for profiles …" : runs.length ? "No run matches." : "No profile was found.",
          ),
        ),
      );
  };
  draw();
  const stop = options.watch.subscribe(() => {
    if (element.isConnected) draw();
    else stop();
  });
  return { element, focus: () => search.focus() };
}

/** @param {import("../types").Run} run @param {string} title @param {Parameters<typeof runList>[0]} options */
function row(run, title, options) {
  const error = errorWords(run);
  return h(
    "tr",
    { class: run.id === options.current ? "chosen" : null },
    h("td", { class: "name" }, h("a", { href: options.link(run.id), "data-tip": run.place }, title)),
    h("td", {}, run.format ? format(run.format) : "–"),
    h("td", { class: "n" }, run.ranks ? count(run.ranks) : "–"),
    h("td", {}, run.modified_ns ? ago(run.modified_ns) : "–"),
    h(
      "td",
      {},
      h(
        "span",
        { class: `state ${run.state}`, "data-tip": error || null, tabindex: error ? 0 : null },
        stateWords(run),
      ),
    ),
  );
}

/** @param {{ path: string, reason: string }[]} skipped */
export function leftOut(skipped) {
  const shown = skipped.slice(0, 50);
  return h(
    "details",
    { open: skipped.length <= 3 },
    h("summary", {}, `${many(skipped.length, "file")} left out`),
    shown.map((each) => problem("info", each.path, each.reason)),
    skipped.length > shown.length
      ? h("p", { class: "cut" }, `${shown.length} of ${count(skipped.length)} shown.`)
      : null,
  );
}
