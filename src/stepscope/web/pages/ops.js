// Ops as a table and as a tree, by module, name scope or call stack; the flame graph has a page of its own.

import { isLeft } from "../shell/api.js";
import { stepsOf } from "../ui/account.js";
import { fill, h } from "../ui/dom.js";
import { rowLinks } from "../ui/events.js";
import { helpLink } from "../shell/help.js";
import { opTree } from "../ui/optree.js";
import { empty, failure } from "../shell/notice.js";
import { choice, pageHead } from "../ui/pieces.js";
import { serverTable } from "../ui/servertable.js";

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
  });
  const show = (/** @type {string} */ view) => fill(room, views[view]());
  const asked = context.params.get("view") ?? "";
  if (asked === "flame") {
    // Links of earlier versions.
    const kept = ["tree", "measure", "find"].map((name) => [name, context.params.get(name)]);
    context.go("flame", Object.fromEntries(kept));
    return;
  }
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
        ],
        view,
        (value) => {
          context.setParams({ view: value === "table" ? null : value });
          show(value);
        },
      ),
      h("a", { class: "more", href: context.link("flame") }, "Flame graph"),
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
    { class: "more", href: context.link("flame", { tree: "stack" }), hidden: !by.has("stack") },
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
