// Two runs side by side: what explains the change, and what each costs per step. A and B as in `stepscope diff A B`.

import { isLeft } from "../../shell/api.js";
import { parts, steps } from "./charts.js";
import { differences } from "./differences.js";
import { diffFlame } from "./diffflame.js";
import { fill, h } from "../../ui/dom.js";
import { duration, signed, size } from "../../text/format.js";
import { helpLink } from "../../shell/help.js";
import { latest } from "../../shell/latest.js";
import { empty, failure } from "../../shell/notice.js";
import { pageHead } from "../../ui/pieces.js";
import { part, PARTS } from "../../text/parts.js";
import { titleOf } from "../../shell/runlist.js";

/** @typedef {import("./differences.js").Row} Row */

const HELD = " at "; // between what is held and the function that holds it, in names of memory

/** @type {import("../../types").Page} */
export const page = { name: "compare", title: "Compare", needsRun: false, render };

/** @param {HTMLElement} root @param {import("../../types").Context} context */
async function render(root, context) {
  let a = context.params.get("a") ?? context.run;
  let b = context.params.get("b") ?? "";
  const room = h("div", {});
  const only = latest();
  const select = (
    /** @type {string} */ label,
    /** @type {string} */ value,
    /** @type {(value: string) => void} */ onChoose,
  ) => {
    const element = h(
      "select",
      { "aria-label": label, style: { maxWidth: "min(440px, 100%)" }, onchange: () => onChoose(element.value) },
      h("option", { value: "" }, "choose a run"),
      context.runs().map((run) => h("option", { value: run.id }, titleOf(run, context.runs()))),
    );
    element.value = value;
    return h("label", { style: { minWidth: "0", maxWidth: "100%" }, "data-tip": element.selectedOptions[0]?.textContent ?? "" }, h("span", { class: "sub" }, `${label} `), element);
  };
  const change = () => {
    context.setParams({ a, b });
    void load();
  };
  const load = async () => {
    const isPair = a && b && a !== b;
    if (isPair) fill(room, h("p", { class: "sub wait" }, "Comparing …"));
    try {
      const found = await only(isPair ? context.api.get("api/compare", { a, b }) : null);
      fill(room, ...(found ? compared(found, context, { a, b }) : [choose(context)]));
    } catch (error) {
      if (!isLeft(error)) fill(room, failure(error, load));
    }
  };
  const controls = h("div", { class: "row", style: { gap: "20px" } });
  const draw = () =>
    fill(
      controls,
      select("A", a, (value) => {
        a = value;
        change();
      }),
      select("B", b, (value) => {
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

/** @param {import("../../types").Context} context */
function choose(context) {
  return empty(
    "Choose two runs.",
    context.runs().length < 2
      ? "Only one run is here: record another, or serve a folder with several."
      : "Differences are of B to A: what B takes more (+) or less (−).",
  );
}

/** The address of events of one of the two runs. @param {any} found @param {import("../../types").Context} context */
function addresses(found, context) {
  return (/** @type {"a" | "b"} */ side, /** @type {string} */ handle, /** @type {Record<string, any>} */ facts = {}) =>
    context.link("trace", { run: found[side].id, rank: null, events: handle, facts: Object.keys(facts).length ? JSON.stringify(facts) : null });
}

/** What identifies a row beside its name, as far as it was compared by that. @param {Row} row @param {("scope" | "shapes" | "op")[]} by */
function factsOf(row, by) {
  return Object.fromEntries(by.filter((key) => row[key]).map((key) => [key, row[key]]));
}

/** A device as events name it. @param {string} name */
function deviceOf(name) {
  return name === "host" ? "cpu" : name.replace(" ", ":");
}

/** @param {any} found @param {import("../../types").Context} context @param {{ a: string, b: string }} runs */
function compared(found, context, runs) {
  const at = addresses(found, context);
  const by = (/** @type {string} */ kind, /** @type {("scope" | "shapes" | "op")[]} */ facts) => (/** @type {Row} */ row, /** @type {"a" | "b"} */ side) => at(side, `${kind}:${row.name}`, factsOf(row, facts));
  return [
    h("p", { class: "verdict" }, found.verdict),
    ...(isOfSnapshots(found) ? [] : found.not_comparable).map((/** @type {string} */ remark) => h("p", { class: "sub" }, remark)),
    h("div", { class: "columns" }, h("div", {}, why(found, at)), h("div", {}, findings(found, at))),
    ...[diffFlame(context, found.flame, runs)].filter((each) => each !== null),
    ...(isOfSnapshots(found) ? [] : inTime(found, by)),
    ...listing("What the device waited for", found.names, "report/breakdown", (row, side) => at(side, `account:${row.part ?? ""}`, { name: row.name }), (row) =>
      h("td", { class: "name" }, `${part(row.part ?? "").title}${row.part === "unexplained" ? " around" : ":"} ${row.name}`),
    ),
    ...listing(`Ops, ${found.ops_measure} time per step`, found.ops, "report/ops", by("op", ["scope", "shapes"])),
    ...listing("Kernels, time per step", found.kernels, "report/kernels", by("kernel", ["op"])),
    ...listing("Collectives, time per step", found.collectives, "report/collectives", by("collective", [])),
    ...listing("Matrix products by precision", { rows: found.precision, total: 0 }, "report/device"),
    ...listing(isOfSnapshots(found) ? "Memory by function" : "Peak memory", { rows: found.memory, total: 0 }, "report/memory", (row, side) =>
      isOfSnapshots(found) ? context.link("memory", { run: found[side].id, rank: null }) : at(side, "memory:", { device: deviceOf(row.name) }),
    ),
  ];
}

/** Two memory snapshots: nothing in them takes time, and memory is named by what holds it. @param {any} found */
function isOfSnapshots(found) {
  return !found.parts.length && found.memory.some((/** @type {Row} */ row) => row.name.includes(HELD));
}

/** How long things take. @param {any} found @param {(kind: string, facts: ("scope" | "shapes" | "op")[]) => (row: Row, side: "a" | "b") => string} by */
function inTime(found, by) {
  return [
    parts(found.parts),
    steps(found.each_step),
    differences("Figures", [stepRow(found.step), ...found.figures.map((/** @type {Row} */ row) => judged(row, found))], {
      help: "report/steps",
      name: (row) => h("td", {}, row.name),
    }),
    differences("Parts of a step", found.parts, {
      help: "report/breakdown",
      name: (row) =>
        h(
          "td",
          { "data-tip": part(row.name).meaning },
          h("i", { class: "swatch", style: { background: `var(--p-${row.name})` } }),
          part(row.name).title,
        ),
      to: by("account", []),
    }),
  ];
}

/** A table where there are rows.
 * @param {string} title @param {{ rows: Row[], total: number }} all @param {string} help @param {(row: Row, side: "a" | "b") => string} [to] @param {(row: Row) => HTMLTableCellElement} [name] */
function listing(title, all, help, to, name) {
  return all.rows.length ? [differences(title, all.rows, { help, total: all.total, name, to })] : [];
}

/** The mean step, which parts sum to. @param {Row} step @returns {Row} */
function stepRow(step) {
  return { ...step, name: "mean step" };
}

/**
 * Figures that are taken from a sample as a whole are as sure as what they follow: the mean step, and the memory of a device.
 * @param {Row} row @param {any} found @returns {Row}
 */
function judged(row, found) {
  if (row.significant) return row;
  if (row.unit === "ns")
    return { ...row, significant: found.step.significant && row.difference * found.step.difference > 0 && Math.abs(row.difference) > (found.step.noise ?? 0) };
  const device = found.memory.find((/** @type {Row} */ each) => each.a === row.a && each.b === row.b);
  return row.unit === "bytes" && device ? { ...row, significant: device.significant } : row;
}

/** @typedef {ReturnType<typeof addresses>} At */

/** Where a line of the explanation leads: to the part of the account that it is about, in the run that has more of it. @param {any} line @param {At} at */
function lineAddress(line, at) {
  if (!(line.kind in PARTS)) return null;
  return at(line.difference < 0 ? "a" : "b", `account:${line.kind}`, line.name && line.name !== line.kind ? { name: line.name } : {});
}

/** The few lines that explain the change, the largest first. @param {any} found @param {At} at */
function why(found, at) {
  const item = (/** @type {any} */ line) =>
    h(
      "li",
      {},
      linked(line.title, lineAddress(line, at)),
      h("b", {}, ` ${signed(line.difference, line.unit === "ns" ? duration : line.unit === "bytes" ? size : times)}`),
      h(
        "small",
        { class: "sub" },
        [line.share > 0 ? `${(100 * line.share).toFixed(0)} % of the change` : "", line.detail]
          .filter(Boolean)
          .map((words) => ` · ${words}`)
          .join(""),
      ),
    );
  return h(
    "div",
    { class: "of" },
    h("div", { class: "tools" }, h("h3", {}, found.lines_title), helpLink("diff")),
    found.lines.length
      ? h("ol", { class: "why" }, found.lines.map(item))
      : h("p", { class: "sub" }, found.no_lines),
  );
}

/** @param {number} calls */
function times(calls) {
  return `${calls} ${calls === 1 ? "call" : "calls"}`;
}

/** Words that lead somewhere, if there is anything. @param {string} words @param {string | null} address */
function linked(words, address) {
  return address === null ? words : h("a", { href: address, class: "of-events" }, words);
}

/** @param {any} found @param {At} at */
function findings(found, at) {
  const list = (/** @type {string} */ title, /** @type {any[]} */ changes, /** @type {string} */ tone, /** @type {"a" | "b"} */ side) =>
    changes.length
      ? [
          h("h3", {}, title),
          h(
            "ul",
            { style: { margin: "0", paddingLeft: "20px" } },
            changes.map((each) => h("li", { class: tone }, linked(each.title, at(side, `finding:${each.code}`)), " ", h("code", {}, each.code), saves(each))),
          ),
        ]
      : null;
  const any = found.gained.length + found.lost.length + found.kept.length;
  return h(
    "div",
    { class: "of" },
    h("div", { class: "tools" }, h("h3", {}, "Findings"), helpLink("report/findings")),
    any
      ? [list("Only in A", found.lost, "better", "a"), list("Only in B", found.gained, "worse", "b"), list("In both", found.kept, "", "b")]
      : h("p", { class: "sub" }, "Neither run has a finding."),
  );
}

/** @param {{ a_saves_ns: number | null, b_saves_ns: number | null }} change */
function saves(change) {
  const [a, b] = [change.a_saves_ns, change.b_saves_ns].map((ns) => (ns ? duration(ns) : ""));
  const words = a && b ? `worth ${a} per step in A, ${b} in B` : a || b ? `worth ${a || b} per step` : "";
  return h("small", { class: "sub" }, ` ${words}`);
}
