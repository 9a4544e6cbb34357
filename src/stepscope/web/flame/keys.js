// Keys of a flame graph, beside the arrows and Enter.

/** @typedef {import("./panel.js").Panel} Panel */

export const KEYS =
  "Arrow keys go from box to box, Enter zooms in, Escape or Backspace out; / searches, n goes to the next hit, i inverts, s shows the callers and callees, t the order of time, e opens the events.";

/** Does what the key stands for; false where it stands for nothing. @param {Panel} panel @param {KeyboardEvent} event */
export function pressed(panel, event) {
  const { at } = panel.graph;
  const { zoom, find, sandwich } = panel.state;
  const acts = /** @type {Record<string, () => void>} */ ({
    Escape: () => panel.out(),
    Backspace: () => panel.out(),
    "/": () => panel.search.focus(),
    i: () => panel.invert(),
    s: () => panel.showAround(at),
    t: () => panel.turn(),
    e: () => panel.open(at),
    n: () => nextHit(panel, 1),
    N: () => nextHit(panel, -1),
  });
  const act = Object.hasOwn(acts, event.key) ? acts[event.key] : null;
  const isOut = event.key === "Escape" && !at && !zoom && !find && sandwich === null; // for whatever is around the graph
  if (!act || isOut) return false;
  act();
  return true;
}

/** @param {Panel} panel @param {KeyboardEvent} event */
export function pressedInSearch(panel, event) {
  if (event.key === "Enter") nextHit(panel, 1);
  else if (event.key === "Escape") panel.clear();
  else return;
  event.preventDefault();
  panel.graph.element.focus();
}

/** @param {Panel} panel @param {number} by */
function nextHit(panel, by) {
  const { find, graph } = panel;
  if (!find) return;
  const hits = graph.boxes.filter((box) => !box.more && !box.isAround && find.test(box.node.name));
  const at = graph.at ? hits.findIndex((box) => box.node === graph.at?.node) : -1;
  if (hits.length) graph.select(hits[(at + by + hits.length) % hits.length] ?? hits[0]);
}
