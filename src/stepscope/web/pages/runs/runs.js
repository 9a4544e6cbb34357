// All runs below the folders that were given, with the figures that matter, their trend, and several of them beside each other.

import { isLeft } from "../../shell/api.js";
import { fill, h } from "../../ui/dom.js";
import { empty } from "../../shell/notice.js";
import { heading, pageHead } from "../../ui/pieces.js";
import { compared, linesOf } from "./lines.js";
import { runTable } from "./list.js";
import { trend } from "./trend.js";

const AGAIN_MS = 1500; // while figures are being computed
const MOST_COMPARED = 8;

/** @type {import("../../types").Page} */
export const page = { name: "runs", title: "Runs", needsRun: false, render };

/** @param {HTMLElement} root @param {import("../../types").Context} context */
function render(root, context) {
  /** @type {Set<string>} */
  const chosen = new Set((context.params.get("chosen") ?? "").split(",").filter(Boolean));
  /** @type {import("../../types").Board} */
  let board = { figures: {}, jobs: {}, changes: {}, waiting: [] };
  const lines = () => linesOf(context.watch.runs(), board);
  const beside = h("div", {});
  const over = h("div", {});
  const compare = compareButton(context, chosen);
  const onChoose = () => {
    compare.update();
    fill(beside, severalTable(lines().filter((line) => chosen.has(line.id))));
    context.setParams({ chosen: [...chosen].join(",") }, { replace: true });
  };
  const list = runTable({ context, chosen, onChoose, lines });
  list.tools.append(compare.element);
  let drawn = "";
  const draw = () => {
    list.draw();
    const now = lines();
    fill(beside, severalTable(now.filter((line) => chosen.has(line.id))));
    const curves = JSON.stringify(now.map((line) => [line.id, line.step, line.change]));
    if (curves !== drawn) fill(over, trend(context, now));
    drawn = curves;
  };
  fill(
    root,
    pageHead("Runs", "page/runs"),
    h(
      "p",
      { class: "sub" },
      context.state.places.map((place) => h("span", { class: "mono" }, place)),
    ),
    context.state.in_tensorboard && !context.runs().length ? nothing() : null,
    list.element,
    beside,
    over,
  );
  draw();
  return follow(context, draw, (found) => {
    board = found;
    draw();
  });
}

/**
 * Asks for the figures now, with each new list, and soon again while some are being computed.
 * @param {import("../../types").Context} context @param {() => void} onList @param {(board: import("../../types").Board) => void} onFigures
 */
function follow(context, onList, onFigures) {
  let timer = 0;
  let isAsking = false;
  const ask = async () => {
    if (isAsking) return;
    isAsking = true;
    clearTimeout(timer);
    try {
      const found = await context.api.get("api/figures");
      onFigures(found);
      if (found.waiting.length) timer = window.setTimeout(ask, AGAIN_MS);
    } catch (error) {
      // The list is shown all the same; the next one asks again.
      if (isLeft(error)) return;
    } finally {
      isAsking = false;
    }
  };
  const stop = context.watch.subscribe(() => {
    onList();
    void ask();
  });
  void ask();
  return () => {
    clearTimeout(timer);
    stop();
  };
}

/** @param {import("../../types").Context} context @param {Set<string>} chosen */
function compareButton(context, chosen) {
  const element = h(
    "button",
    {
      type: "button",
      onclick: () => {
        const [a, b] = [...chosen];
        context.go("compare", { run: null, a, b });
      },
    },
    "Compare",
  );
  const update = () => {
    element.disabled = chosen.size !== 2;
    element.textContent = chosen.size === 2 ? "Compare the two" : "Tick two runs to compare them";
  };
  update();
  return { element, update };
}

/** The chosen runs beside each other. @param {import("./lines.js").Line[]} all */
function severalTable(all) {
  if (all.length < 2) return null;
  const lines = all.slice(0, MOST_COMPARED);
  return [
    heading("The chosen runs", "page/runs"),
    h(
      "div",
      { class: "table beside" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""), lines.map((line) => h("th", { scope: "col" }, line.title)))),
        h(
          "tbody",
          {},
          compared(lines).map((row) => h("tr", {}, h("th", { scope: "row" }, row.title), row.cells.map((cell) => h("td", { class: "words" }, cell)))),
        ),
      ),
    ),
    h("p", { class: "note" }, `Changes are against the first.${all.length > lines.length ? ` The first ${lines.length} of ${all.length}.` : ""}`),
  ];
}

function nothing() {
  return empty(
    "Nothing to show yet.",
    "TensorBoard's folder has no profile that stepscope can read. They appear here by themselves once a run writes one: see “Recording” in the documentation.",
  );
}
