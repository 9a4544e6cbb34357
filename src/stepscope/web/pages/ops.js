// Ops as a table, as a tree and as a flame graph, by module, name scope or call stack.

import { isLeft } from "../shell/api.js";
import { stepsOf } from "../ui/account.js";
import { fill, h } from "../ui/dom.js";
import { rowLinks } from "../ui/events.js";
import { hash, visible } from "../ui/flame.js";
import { count, duration, share } from "../text/format.js";
import { helpLink } from "../shell/help.js";
import { flameFigure } from "../ui/icicle.js";
import { opTree } from "../ui/optree.js";
import { latest } from "../shell/latest.js";
import { empty, failure } from "../shell/notice.js";
import { choice, pageHead } from "../ui/pieces.js";
import { serverTable } from "../ui/servertable.js";

const COLOURS = [
  "p-compute",
  "p-input",
  "p-collective",
  "p-copy",
  "p-compile",
  "p-io",
  "p-python",
  "p-sync",
  "p-host_collective",
  "p-device_gap",
];
const GROUPS = /** @type {[string, string][]} */ ([
  ["shapes", "shapes"],
  ["scope", "module or scope"],
  ["placement", "placement"],
  ["stack", "call stack"],
]);

/** @type {import("../types").Page} */
export const page = { name: "ops", title: "Ops", render };

/** @param {HTMLElement} root @param {import("../types").Context} context */
async function render(root, context) {
  const report = await context.report();
  if (!report.ops.total) {
    fill(
      root,
      pageHead("Ops", "page/ops"),
      empty(
        "No ops were recorded.",
        "The profile has no operations of a framework: a plain Chrome trace, or a capture without the host's events. Record the host too: ProfilerActivity.CPU in torch.profiler, host_tracer_level=2 in TensorFlow and JAX. The Trace page shows what there is.",
      ),
    );
    return;
  }
  const room = h("div", {});
  const views = /** @type {Record<string, () => import("../ui/dom.js").Content>} */ ({
    table: () => opsTable(context, report.ops.rows, stepsOf(report)),
    tree: () => tree(context, report),
    flame: () => flame(context, report),
  });
  const show = (/** @type {string} */ view) => fill(room, views[view]());
  const asked = context.params.get("view") ?? "";
  const view = Object.hasOwn(views, asked) ? asked : "table";
  fill(
    root,
    pageHead("Ops", "page/ops"),
    h(
      "div",
      { class: "row" },
      choice(
        "view",
        [
          ["table", "Table"],
          ["tree", "Tree"],
          ["flame", "Flame graph"],
        ],
        view,
        (value) => {
          context.setParams({ view: value === "table" ? null : value });
          show(value);
        },
      ),
    ),
    room,
  );
  show(view);
}

/** @param {import("../types").Context} context @param {import("../types").Report["ops"]["rows"]} rows @param {number | null} steps */
function opsTable(context, rows, steps) {
  const by = new Set(
    (context.params.get("by") ?? "").split(",").filter((each) => GROUPS.some(([name]) => name === each)),
  );
  const boxes = GROUPS.map(([name, title]) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": by.has(name),
        onclick: (/** @type {Event} */ event) => {
          if (!by.delete(name)) by.add(name);
          /** @type {HTMLElement} */ (event.currentTarget).setAttribute("aria-pressed", String(by.has(name)));
          context.setParams({ by: [...by].join(",") });
          drawn.hidden = !by.has("stack");
          table.reload();
        },
      },
      title,
    ),
  );
  const drawn = h(
    "a",
    { class: "more", href: context.link("ops", { view: "flame", tree: "stack" }), hidden: !by.has("stack") },
    "as a flame graph",
  );
  const table = serverTable(context, {
    name: "ops",
    help: helpLink("report/ops"),
    title: "Ops",
    query: () => ({ by: [...by].join(",") }),
    why: "No ops were recorded.",
    hide: nowhere(rows),
    rowTip: "Enter or click: its calls in the trace",
    to: (row) => rowLinks(context, "op", "name", [...by])(row),
    perStep: steps && { steps, columns: ["host_self_ns", "host_total_ns", "device_self_ns", "device_total_ns", "flops", "bytes"] },
  });
  return [
    h(
      "div",
      { class: "row", role: "group", "aria-label": "group by", style: { gap: "6px" } },
      h("span", { class: "sub" }, "group by"),
      boxes,
      drawn,
    ),
    table,
  ];
}

/** Times that no op has: on a device that is not there, or on a host that launches whole programs. @param {import("../types").Report["ops"]["rows"]} rows */
function nowhere(rows) {
  return ["host", "device"]
    .filter((side) => !rows.some((row) => row[/** @type {"host_total_ns" | "device_total_ns"} */ (`${side}_total_ns`)]))
    .flatMap((side) => [`${side}_self_ns`, `${side}_total_ns`]);
}

/** Modules and scopes with their ops, per step unless totals are asked for. @param {import("../types").Context} context @param {import("../types").Report} report */
function tree(context, report) {
  const { ranks } = report.profile;
  const steps = stepsOf(report, context.rank ?? ranks[0]);
  let by = /** @type {import("../ui/optree.js").Measure} */ (nowhere(report.ops.rows).includes("device_total_ns") ? "host" : "device");
  if (["host", "device"].includes(context.params.get("measure") ?? "")) by = /** @type {typeof by} */ (context.params.get("measure"));
  let isTotal = context.params.get("times") === "total";
  const room = h("div", {}, h("p", { class: "sub wait" }, "Loading …"));
  /** @type {any} */
  let answer = null;
  const draw = () => fill(room, answer.nodes.length ? opTree(context, answer, { by, steps: isTotal ? null : steps }) : empty("Nothing to draw.", "No op has any time inside the steps."));
  const load = async () => {
    try {
      answer = await context.api.get(`api/runs/${context.run}/optree`, { rank: context.rank });
      draw();
    } catch (error) {
      if (!isLeft(error)) fill(room, failure(error, load));
    }
  };
  void load();
  return [
    h(
      "div",
      { class: "row", style: { gap: "24px" } },
      choice(
        "sorted by",
        [
          ["host", "host"],
          ["device", "device"],
        ],
        by,
        (value) => {
          by = /** @type {typeof by} */ (value);
          context.setParams({ measure: value }, { replace: true });
          if (answer) draw();
        },
      ),
      steps === null
        ? null
        : choice(
            "times",
            [
              ["step", "per step"],
              ["total", "totals"],
            ],
            isTotal ? "total" : "step",
            (value) => {
              isTotal = value === "total";
              context.setParams({ times: isTotal ? value : null }, { replace: true });
              if (answer) draw();
            },
          ),
    ),
    context.rank === null && ranks.length > 1 ? h("p", { class: "sub" }, `Of rank ${ranks[0]}; choose another one in the header.`) : null,
    room,
  ];
}

/** @param {import("../types").Context} context @param {import("../types").Report} report */
function flame(context, report) {
  const { ranks } = report.profile;
  let by = context.params.get("tree") ?? "scope";
  // Ops of compiled programs have no time on the host.
  let measure = context.params.get("measure") ?? (nowhere(report.ops.rows).includes("host_total_ns") ? "device" : "host");
  let words = context.params.get("find") ?? "";
  const room = h("div", {}, h("p", { class: "sub wait" }, "Loading …"));
  const only = latest();
  const load = async () => {
    try {
      const tree = await only(context.api.get(`api/runs/${context.run}/flame`, { by, measure, rank: context.rank }));
      fill(
        room,
        drawn(tree, by, measure, words, context.rank === null && ranks.length > 1 ? ` of rank ${ranks[0]}` : ""),
      );
    } catch (error) {
      if (!isLeft(error)) fill(room, failure(error, load));
    }
  };
  const change = (/** @type {import("../types").Changes} */ changes) => {
    context.setParams(changes, { replace: true });
    void load();
  };
  const find = h("input", {
    type: "search",
    placeholder: "highlight",
    "aria-label": "highlight names",
    value: words,
    onchange: () => {
      words = find.value;
      change({ find: words });
    },
  });
  void load();
  return [
    h(
      "div",
      { class: "row", style: { gap: "24px" } },
      choice(
        "by",
        [
          ["scope", "module or name scope"],
          ["stack", "call stack"],
        ],
        by === "module" ? "scope" : by,
        (value) => {
          by = value;
          change({ tree: value });
        },
      ),
      choice(
        "time",
        [
          ["host", "host"],
          ["device", "device"],
        ],
        measure,
        (value) => {
          measure = value;
          change({ measure: value });
        },
      ),
      find,
    ),
    room,
  ];
}

/** @param {import("../ui/flame.js").Tree} tree @param {string} by @param {string} measure @param {string} words to highlight @param {string} whose the one rank that is drawn of several */
function drawn(tree, by, measure, words, whose) {
  const { nodes, whole, hidden } = visible(tree);
  if (!nodes.length || whole <= 0) {
    const why =
      by === "stack"
        ? "The profile has no call stacks: record with stacks."
        : measure === "device"
          ? "No device time is linked to ops."
          : "The profile has no module path or name scope.";
    return empty("Nothing to draw.", `${why} Try the other choices above.`);
  }
  const wanted = words.toLowerCase();
  return flameFigure({
    title: `${measure === "host" ? "Host" : "Device"} time by ${by === "stack" ? "call stack" : "module or name scope"}${whose}`,
    unit: `${duration(whole)} in all; width is time${whose ? "; choose another rank in the header" : ""}`,
    help: "report/ops",
    highest: 900,
    tree: { nodes, whole },
    hidden: hidden + (tree.left_out ?? 0),
    root: ["all", duration(whole)],
    words: (node) =>
      `${duration(node.total)} (${share(node.total / whole)}), itself ${duration(node.self)}${node.calls ? `, ${count(node.calls)} calls` : ""}`,
    paint: (node, _, colour) =>
      wanted && !node.name.toLowerCase().includes(wanted)
        ? colour("rule")
        : colour(COLOURS[hash(node.name) % COLOURS.length]),
  });
}
