// Around the picture: the bar of views, and what the selected box, the search and the picture as a whole say in words.

import { arrange, fill, h } from "../ui/dom.js";
import { choice } from "../ui/pieces.js";
import { count, many, share } from "../text/format.js";
import { clipped, shortName } from "../text/names.js";
import { hitsAcross, hitsOf } from "./search.js";

/** @typedef {import("./panel.js").Panel} Panel */
/** @typedef {import("./panel.js").State} State */
/** @typedef {import("./layout.js").Box} Box */

const LONGEST = 300;
const LONGEST_BUTTON = 40;
const NOT_CALLS = ["all", "rest"];

/** @param {string} words @param {boolean} isOn @param {() => void} act @param {string} tip */
function button(words, isOn, act, tip) {
  return h("button", { type: "button", "aria-pressed": isOn, "data-tip": tip, onclick: act }, words);
}

/** The views to choose from, and the search. @param {Panel} panel */
export function drawBar(panel) {
  const { state, options, bar } = panel;
  const order = options.ask
    ? choice("order", [["heavy", "left-heavy"], ["time", "time order"]], state.order, (value) => panel.change({ order: /** @type {State["order"]} */ (value), zoom: "", sandwich: null }))
    : null;
  const invert = !panel.isTime && !panel.around ? button("inverted", state.inverted, () => panel.invert(), "Callees on top, their callers below (i)") : null;
  const middle =
    panel.around && state.sandwich !== null
      ? button(`around ${clipped(shortName(state.sandwich), LONGEST_BUTTON)} ✕`, true, () => panel.change({ sandwich: null, zoom: "" }), "Back to the whole graph (Esc)")
      : null;
  const out = state.zoom ? button("zoom out", false, () => panel.out(), "Esc or Backspace") : null;
  const colours = options.colours.length > 1 ? choice("colours", options.colours, state.colour, (value) => panel.change({ colour: value })) : null;
  const kept = [order, invert, middle, out, colours].filter((each) => each !== null);
  const focused = bar.contains(document.activeElement) && document.activeElement !== panel.search ? document.activeElement?.textContent : null;
  arrange(bar, [...kept, panel.search, panel.hits]);
  if (focused) ([...bar.querySelectorAll("button")].find((each) => each.textContent === focused) ?? panel.graph.element).focus();
}

/** What the selected box says, and where it leads. @param {Panel} panel @param {Box | null} box */
export function describeBox(panel, box) {
  const { live, about, options } = panel;
  const words = box ? options.words(box.node, panel.viewOf(box.node), panel.whole) : "";
  options.onSelect?.(box ? box.node : null);
  live.textContent = box ? `${clipped(shortName(box.node.name), LONGEST)}: ${words}` : "";
  if (!box) {
    fill(about, h("p", { class: "sub" }, "Click a box to zoom in, or go through the boxes with the arrow keys."));
    return;
  }
  const address = panel.address(box);
  fill(
    about,
    h("p", {}, h("b", { class: "place" }, clipped(shortName(box.node.name), LONGEST)), h("br"), words),
    h(
      "p",
      { class: "row" },
      address ? h("a", { href: address, class: "more" }, "its events in the trace (e)") : null,
      panel.isTime || NOT_CALLS.includes(box.node.kind) ? null : h("button", { type: "button", onclick: () => panel.showAround(box) }, "callers and callees (s)"),
    ),
  );
}

/** How much the search hits. @param {Panel} panel */
export function showHits(panel) {
  const { find, hits, options } = panel;
  if (!find) {
    hits.textContent = "";
    return;
  }
  const found = panel.isTime ? hitsAcross(panel.inOrder?.boxes ?? [], find) : options.root ? hitsOf(options.root, find) : null;
  const kind = find.isPattern ? "" : " (not a regular expression: searched for as it is)";
  hits.textContent = found ? `${many(found.names, "name")} in ${count(found.boxes)} boxes, ${share(found.share)} of all${kind}` : "";
}

/** What width is, and what is left out. @param {Panel} panel */
export function showNote(panel) {
  const { answer, options, note, isTime } = panel;
  const left = isTime ? answer?.left_out ?? 0 : options.hidden;
  const threads = isTime ? answer?.threads_left_out ?? 0 : 0;
  note.textContent = [
    isTime ? "Neighbours that are narrower than a pixel are one box; zoom in to see them one by one." : options.note,
    isTime && !options.isStack ? "Time order is by call stack." : "",
    left ? `${count(left)} of the smallest boxes are left out.` : "",
    threads ? `${many(threads, "thread")} that did less ${threads === 1 ? "is" : "are"} left out.` : "",
  ].filter(Boolean).join(" ");
}
