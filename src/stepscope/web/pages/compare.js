// Two runs side by side: what each costs per step, and what the change brought.

import { isLeft } from "../app/api.js";
import { differences } from "../app/differences.js";
import { fill, h } from "../app/dom.js";
import { figure, timeAxis } from "../app/figure.js";
import { duration, signed, size } from "../app/format.js";
import { helpLink } from "../app/help.js";
import { empty, failure } from "../app/notice.js";
import { pageHead } from "../app/pieces.js";
import { part } from "../app/parts.js";

/** @typedef {import("../app/differences.js").Row} Row */

/** @type {import("../types").Page} */
export const page = { name: "compare", title: "Compare", needsRun: false, render };

/** @param {HTMLElement} root @param {import("../types").Context} context */
async function render(root, context) {
  let a = context.params.get("a") ?? context.run;
  let b = context.params.get("b") ?? "";
  const room = h("div", {});
  const select = (
    /** @type {string} */ label,
    /** @type {string} */ value,
    /** @type {(value: string) => void} */ onChoose,
  ) => {
    const element = h(
      "select",
      { "aria-label": label, style: { maxWidth: "420px" }, onchange: () => onChoose(element.value) },
      h("option", { value: "" }, "choose a run"),
      context.runs().map((run) => h("option", { value: run.id }, run.name)),
    );
    element.value = value;
    return h("label", {}, h("span", { class: "sub" }, `${label} `), element);
  };
  const change = () => {
    context.setParams({ a, b });
    void load();
  };
  const load = async () => {
    if (!a || !b || a === b) {
      fill(
        room,
        empty(
          "Choose two runs.",
          context.runs().length < 2
            ? "Only one run is here: record another, or serve a folder with several."
            : "Differences are of the second to the first: what it takes more or less.",
        ),
      );
      return;
    }
    fill(room, h("p", { class: "sub wait" }, "Comparing …"));
    try {
      fill(room, ...compared(await context.api.get("api/compare", { a, b })));
    } catch (error) {
      if (!isLeft(error)) fill(room, failure(error, load));
    }
  };
  const controls = h("div", { class: "row", style: { gap: "20px" } });
  const draw = () =>
    fill(
      controls,
      select("before", a, (value) => {
        a = value;
        change();
      }),
      select("after", b, (value) => {
        b = value;
        change();
      }),
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            [a, b] = [b, a];
            draw();
            change();
          },
        },
        "Swap",
      ),
    );
  draw();
  fill(root, pageHead("Compare", "page/compare"), controls, room);
  await load();
}

/** @param {any} found */
function compared(found) {
  return [
    h("p", { class: "verdict" }, sentence(found.figures)),
    ...why(found),
    h(
      "div",
      { class: "columns" },
      h("div", {}, differences("Figures", found.figures, { help: "report/steps", name: (name) => h("td", {}, name) })),
      h("div", {}, findings(found)),
    ),
    parts(found.parts),
    steps(found.steps),
    differences("Parts of a step", found.parts, {
      help: "report/breakdown",
      name: (name) =>
        h(
          "td",
          { "data-tip": part(name).meaning },
          h("i", { class: "swatch", style: { background: `var(--p-${name})` } }),
          part(name).title,
        ),
    }),
    differences(`Ops, ${found.ops_measure} time per step`, found.ops, { help: "report/ops", total: found.ops_total }),
    found.kernels.length
      ? differences("Kernels, time per step", found.kernels, { help: "report/kernels", total: found.kernels_total })
      : empty("No kernels.", "Neither run recorded work on a device."),
    found.memory.length
      ? differences("Peak memory by kind", found.memory, { help: "report/memory" })
      : empty("No memory.", "Not recorded in these runs."),
  ];
}

/** What the diff makes of it: whether it is more than chance, and the lines that explain it. @param {any} found */
function why(found) {
  const item = (/** @type {any} */ line) =>
    h(
      "li",
      {},
      line.title,
      h("b", {}, ` ${signed(line.difference, line.unit === "ns" ? duration : line.unit === "bytes" ? size : String)}`),
      line.detail ? h("small", { class: "sub" }, ` ${line.detail}`) : null,
    );
  return [
    found.verdict ? h("p", { class: "sub" }, found.verdict) : null,
    ...found.not_comparable.map((/** @type {string} */ remark) => h("p", { class: "sub" }, remark)),
    found.lines.length
      ? h("div", { class: "of" }, h("div", { class: "tools" }, h("h3", {}, "What explains it"), helpLink("diff")), h("ol", { class: "why" }, found.lines.map(item)))
      : null,
  ].filter((each) => each !== null);
}

/** @param {Row[]} figures */
function sentence(figures) {
  const step = figures.find((row) => row.name === "median step");
  if (!step || !step.a || !step.b) return "The steps of the two cannot be compared: at least one run has none.";
  const ratio = step.a / step.b;
  if (Math.abs(ratio - 1) < 0.01) return `Both take the same time: ${duration(step.a)} and ${duration(step.b)} a step.`;
  return ratio > 1
    ? `The second is ${ratio.toFixed(2)}× as fast: ${duration(step.b)} a step instead of ${duration(step.a)}.`
    : `The second is slower: ${duration(step.b)} a step instead of ${duration(step.a)}, ${(1 / ratio).toFixed(2)}× as long.`;
}

/** @param {any} found */
function findings(found) {
  const list = (/** @type {string} */ title, /** @type {any[]} */ changes, /** @type {string} */ tone) =>
    changes.length
      ? [
          h("h3", {}, title),
          h(
            "ul",
            { style: { margin: "0", paddingLeft: "20px" } },
            changes.map((each) => h("li", { class: tone }, each.title, " ", h("code", {}, each.code), saves(each))),
          ),
        ]
      : null;
  const any = found.gained.length + found.lost.length + found.kept.length;
  return h(
    "div",
    { class: "of" },
    h("div", { class: "tools" }, h("h3", {}, "Findings"), helpLink("report/findings")),
    any
      ? [list("Mended", found.lost, "better"), list("New", found.gained, "worse"), list("Still there", found.kept, "")]
      : h("p", { class: "sub" }, "Neither run has a finding."),
  );
}

/** @param {{ a_saves_ns: number | null, b_saves_ns: number | null }} change */
function saves(change) {
  const [a, b] = [change.a_saves_ns, change.b_saves_ns].map((ns) => (ns ? duration(ns) : ""));
  const words = a && b ? `worth ${a} a step before, ${b} after` : a || b ? `worth ${a || b} a step` : "";
  return h("small", { class: "sub" }, ` ${words}`);
}

/** @param {Row[]} found */
function parts(found) {
  const all = [...found].sort(
    (a, b) =>
      Number(part(b.name).isBusy) - Number(part(a.name).isBusy) ||
      Math.max(b.a ?? 0, b.b ?? 0) - Math.max(a.a ?? 0, a.b ?? 0),
  );
  if (!all.length) return empty("No account.", "Neither run could be accounted for.");
  const { scale, unit } = timeAxis(
    Math.max(
      ...["a", "b"].map((side) => all.reduce((sum, row) => sum + Number(row[/** @type {"a" | "b"} */ (side)] ?? 0), 0)),
      1,
    ),
  );
  return figure({
    title: "Where the time of a step goes",
    unit: `${unit} per step`,
    help: "report/breakdown",
    height: 210,
    draw: (colour) => ({
      data: all.map((row) => ({
        type: "bar",
        orientation: "h",
        name: part(row.name).title,
        y: ["before", "after"],
        x: [(row.a ?? 0) / scale, (row.b ?? 0) / scale],
        marker: { color: colour(`p-${row.name}`) },
        text: [row.a, row.b].map((value) => `${part(row.name).title}: ${value === null ? "nothing" : duration(value)}`),
        hoverinfo: "text",
        textposition: "none",
      })),
      layout: {
        barmode: "stack",
        yaxis: { autorange: "reversed", type: "category" },
        xaxis: { title: { text: `time per step [${unit}]` } },
        margin: { l: 60, r: 16, t: 46, b: 44 },
      },
    }),
  });
}

/** @param {{ a: number[], b: number[] }} both */
function steps(both) {
  if (!both.a.length && !both.b.length) return empty("No steps.", "Neither run has steps.");
  const { scale, unit } = timeAxis(Math.max(...both.a, ...both.b, 1));
  return figure({
    title: "Step times of both",
    unit,
    help: "report/steps",
    height: 230,
    draw: (colour) => ({
      data: /** @type {["a" | "b", string, string][]} */ ([
        ["a", "before", "p-device_gap"],
        ["b", "after", "p-compute"],
      ]).map(([side, name, tint]) => ({
        type: "scatter",
        mode: "lines+markers",
        name,
        x: both[side].map((_, at) => at + 1),
        y: both[side].map((ns) => ns / scale),
        line: { color: colour(tint), width: 1.5 },
        marker: { size: 5 },
        text: both[side].map((ns, at) => `${name}, step ${at + 1}: ${duration(ns)}`),
        hoverinfo: "text",
      })),
      layout: {
        xaxis: {
          title: { text: "step, counted from 1" },
          tick0: 1,
          dtick: Math.max(1, Math.ceil(Math.max(both.a.length, both.b.length) / 15)),
        },
        yaxis: { title: { text: `time [${unit}]` }, rangemode: "tozero" },
      },
    }),
  });
}
