// The differential flame graph: ops below their scopes, as wide as the longer of both times; red is more in B, blue is less.

import { eventsLink } from "../../ui/events.js";
import { h } from "../../ui/dom.js";
import { helpLink } from "../../shell/help.js";
import { colour } from "../../shell/theme.js";
import { duration, share, signed } from "../../text/format.js";
import { inked } from "../../flame/colours.js";
import { flamePanel } from "../../flame/panel.js";
import { diffTree } from "../../flame/tree.js";

/** Parent, name, A's and B's own time, A's and B's with all below. @typedef {[number, number, number, number, number, number]} Node */
/** @typedef {{ measure: string, names: string[], nodes: Node[], left_out: number }} Flame */

const FULL = 0.5; // a change by this share has the full colour
const LEGEND = /** @type {[string, number][]} */ ([["half or less in B", -1], ["less", -0.25], ["the same", 0], ["more", 0.25], ["twice as much in B, or new", 1]]);

/** A colour between two, as `#rrggbb`. @param {string} from @param {string} to @param {number} way 0 to 1 */
export function mixed(from, to, way) {
  const parts = [from, to].map((each) => [1, 3, 5].map((at) => Number.parseInt(each.trim().slice(at, at + 2), 16)));
  return `#${parts[0].map((low, at) => Math.round(low + (parts[1][at] - low) * way).toString(16).padStart(2, "0")).join("")}`;
}

/** From −1, all of it gone, to 1, all of it new. @param {number} a @param {number} b */
export function change(a, b) {
  const larger = Math.max(a, b);
  return larger ? (b - a) / larger : 0;
}

/** @param {number} way as `change` gives it */
function shade(way) {
  return mixed(colour("rule"), colour(way > 0 ? "p-dispatch" : "accent"), Math.min(1, Math.abs(way) / FULL));
}

/** @param {import("../../types").Context} context @param {Flame} flame @param {{ a: string, b: string }} runs */
export function diffFlame(context, flame, runs) {
  const root = diffTree(flame);
  if (!root.total) return null;
  const words = (/** @type {import("../../flame/tree.js").Node} */ node) => {
    const [a, b] = node.sides ?? [0, 0];
    return `A ${duration(a)}, B ${duration(b)} a step (${signed(b - a, duration)}), ${share(node.total / root.total)} of the width`;
  };
  const paint = () => ({
    of: (/** @type {import("../../flame/tree.js").Node} */ node) => inked(shade(change(...(node.sides ?? [0, 0])))),
    legend: LEGEND.map(([title, way]) => /** @type {[string, string]} */ ([title, shade(way)])),
  });
  const [a, b] = root.sides ?? [0, 0];
  return h(
    "figure",
    { class: "figure" },
    h(
      "header",
      {},
      h("h3", {}, `Where ${flame.measure} time grew and shrank`),
      h("small", {}, `A ${duration(a)}, B ${duration(b)} a step; width is the longer of both`),
      helpLink("diff"),
    ),
    flamePanel({
      root,
      hidden: flame.left_out,
      note: "A box is as wide as the longer of both times; the costliest are on the left.",
      isStack: false,
      ask: null,
      state: { order: "heavy", inverted: false, sandwich: null, colour: "change", find: "", zoom: "" },
      onState: () => {},
      colours: [["change", "change"]],
      paint: () => paint,
      words,
      link: (handle, node) =>
        eventsLink(context, handle.kind, handle.name, { ...handle.facts, measure: flame.measure }, null, node.sides?.[1] ? runs.b : runs.a),
    }),
  );
}
