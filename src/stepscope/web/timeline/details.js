// The drawer about one slice: what it is, when, what it belongs to, its arguments, stack and links.

import { isLeft } from "../shell/api.js";
import { fill, h } from "../ui/dom.js";
import { count, duration, share, significant, size } from "../text/format.js";
import { shortName } from "../text/names.js";
import { innermostPlace } from "../text/stack.js";
import { sourceOf } from "../ui/source.js";
import { part } from "../text/parts.js";
import { tickText } from "./draw/ruler.js";

/** @typedef {import("./act/selection.js").Selection} Selection */

const WHY = /** @type {Record<string, [string, string]>} */ ({
  launch: ["launches", "launched by"],
  "forward-backward": ["backward", "forward"],
  "producer-consumer": ["leads to", "comes from"],
  "record-wait": ["waited for by", "waits for"],
  "graph-node": ["runs", "part of"],
  flow: ["flows to", "flows from"],
});
const UNITS = /** @type {Record<string, (value: any) => string>} */ ({
  bytes: size, shared_bytes: size, requested: size, total_allocated: size, total_reserved: size, occupancy: (value) => `${significant(value)} %`,
});
const HIDDEN = new Set(["event", "op", "python_parent"]);

/** @param {Selection} selection */
function closing(selection) {
  return h("button", { type: "button", class: "tl-close", "data-tip": "Clear the selection (Esc)", "aria-label": "Clear the selection", onclick: () => selection.clear() }, "✕");
}

/** @param {[string, any][]} rows */
function facts(rows) {
  const known = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "tl-facts" }, known.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** @param {string} words @param {() => void} action @param {string} [tip] */
export function linkTo(words, action, tip) {
  return h("button", { type: "button", class: "tl-link", "data-tip": tip ?? null, onclick: action }, words);
}

/** @param {string} title @param {...import("../ui/dom.js").Content} content */
function section(title, ...content) {
  return h("div", {}, h("h3", {}, title), ...content);
}

/** @param {any} value */
function plain(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((each) => typeof each === "number")) return value.join(" × ");
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : significant(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {HTMLElement} drawer @param {unknown} error @param {Selection} selection */
export function showFailure(drawer, error, selection) {
  const fix = error instanceof Error && "fix" in error ? String(error.fix ?? "") : "";
  fill(drawer, closing(selection), h("div", { class: "tl-range" }, h("p", {}, error instanceof Error ? error.message : String(error)), fix && h("p", {}, fix)));
}

/** To the microsecond, or to the nanosecond where it was recorded so: rounded, neighbours would begin together. @param {number} ns */
function when(ns) {
  return `${tickText(ns, Math.round(ns) % 1000 ? 1 : 1000)} after the beginning`;
}

/** @param {HTMLElement} drawer @param {import("./types").EventShown} event @param {number} rank @param {Selection} selection */
export function showEvent(drawer, event, rank, selection) {
  const { timeline } = selection;
  const go = (/** @type {number} */ id) => () => selection.go(rank, "events", id);
  const isOverlong = event.dur_ns > 0 && event.self_ns < event.dur_ns;
  const about = facts([
    ["duration", event.dur_ns ? duration(event.dur_ns) : "none: a moment"],
    ["self", isOverlong ? `${duration(event.self_ns)} (${share(event.self_ns / event.dur_ns)}), ${count(event.children)} inside` : null],
    ["start", when(timeline.placeOf(rank, event.after_ns))],
    ["kind", event.role ? `${event.kind}, ${event.role}` : event.kind],
    ["category", event.category],
    ["track", event.thread],
    ["rank", timeline.ranks.length > 1 ? String(rank) : null],
    ["step", event.step === null ? null : h("a", { href: timeline.context.link("steps", { filter: `step=${event.step}` }) }, `step ${event.step}`)],
    ["op", event.op && event.op.id !== event.id ? linkTo(event.op.name, go(event.op.id), "The op that it belongs to") : null],
  ]);
  const tables = Object.entries(event.facts).map(([table, row]) => section(table, facts(
    Object.entries(row).filter(([name]) => !HIDDEN.has(name)).map(([name, value]) => [name.replaceAll("_", " "), UNITS[name] && typeof value === "number" ? UNITS[name](value) : plain(value)]),
  )));
  const related = h("div", {});
  const args = h("div", {}, h("h3", {}, "arguments"), h("p", { class: "tl-list" }, "…"));
  fill(drawer, closing(selection), h("div", { class: "tl-details" },
    h("h2", { "data-tip": event.name }, shortName(event.name)),
    shortName(event.name) === event.name ? null : h("p", { class: "tl-full" }, event.name),
    h("div", {}, about, links(event, go), related),
    h("div", {}, source(event, timeline.context), tables, args),
    stack(event, go)));
  showArguments(args, event, rank, selection);
  return related;
}

/** Where in the program it is, or was launched. @param {import("./types").EventShown} event @param {import("../types").Context} context */
function source(event, context) {
  const place = innermostPlace([...event.launch_stack, ...event.stack, event].map((each) => each.name));
  return place && section("source", sourceOf(context, place));
}

/** What encloses it, and for work of a device what launched it. @param {import("./types").EventShown} event @param {(id: number) => () => void} go */
function stack(event, go) {
  const rows = (/** @type {{ id: number, name: string, kind: string }[]} */ found) => found.map((each) => h("li", {}, linkTo(each.name, go(each.id), `${each.name} (${each.kind})`)));
  const own = section("stack, outermost first", h("ol", { class: "tl-list" }, rows(event.stack), h("li", {}, h("b", {}, event.name))));
  if (!event.launch_stack.length) return own;
  const launch = section("launched from, outermost first", h("ol", { class: "tl-list" }, rows(event.launch_stack)));
  return event.stack.length ? h("div", {}, own, launch) : launch;
}

/** @param {import("./types").EventShown} event @param {(id: number) => () => void} go */
function links(event, go) {
  if (!event.links.length) return null;
  const rows = event.links.map((link) => {
    const words = WHY[link.why] ?? WHY.flow;
    return h("li", {}, `${words[link.direction === "to" ? 0 : 1]} `, linkTo(link.name, go(link.id), `${link.name}\n${duration(link.dur_ns)}`));
  });
  const more = event.links_total > event.links.length ? `links (${count(event.links.length)} of ${count(event.links_total)})` : "links";
  return section(more, h("ul", { class: "tl-list" }, rows));
}

/** @param {HTMLElement} place @param {import("./types").EventShown} event @param {number} rank @param {Selection} selection */
async function showArguments(place, event, rank, selection) {
  try {
    const found = await selection.timeline.ask.arguments(rank, event.id);
    const rows = /** @type {[string, any][]} */ (Object.entries(found.arguments).map(([name, value]) => [name, plain(value)]));
    fill(place, h("h3", {}, "arguments"), rows.length ? facts(rows) : h("p", { class: "tl-list" }, "none beyond what is shown"));
  } catch (error) {
    if (!isLeft(error)) fill(place, h("h3", {}, "arguments"), error instanceof Error ? error.message : String(error));
  }
}

/** A step, a phase or a slice of the account. @param {HTMLElement} drawer @param {any} span @param {number} rank @param {Selection} selection */
export function showSpan(drawer, span, rank, selection) {
  const { timeline } = selection;
  const meaning = span.part ? part(span.part) : null;
  const rows = /** @type {[string, any][]} */ ([
    ["duration", duration(span.dur_ns)],
    ["start", when(timeline.placeOf(rank, span.after_ns))],
    ["meaning", meaning?.meaning ?? span.meaning],
    ["device", span.device],
    ["step", span.step === null || span.step === undefined ? null : h("a", { href: timeline.context.link("steps", { filter: `step=${span.step}` }) }, `step ${span.step}`)],
    [span.came_next ? "before" : "because of", span.named_by ? linkTo(span.named_by.name, () => selection.go(rank, "events", span.named_by.id)) : null],
    ["in particular", span.detail ? linkTo(span.detail.name, () => selection.go(rank, "events", span.detail.id)) : null],
    ["thread", span.thread],
    ["part", span.finding ? meaning?.title : null],
    ["all of it", span.finding ? h("a", { href: timeline.context.link("trace", { events: `finding:${span.finding}` }) }, "the events of this finding") : null],
  ]);
  const parts = (span.parts ?? []).map((/** @type {{ part: string, ns: number }} */ each) => h("li", {},
    h("span", { class: "tl-bar-of", style: { width: `${Math.round((each.ns / Math.max(1, span.dur_ns)) * 160)}px`, background: `var(--p-${each.part})` } }), ` ${part(each.part).title} ${duration(each.ns)} (${share(each.ns / Math.max(1, span.dur_ns))})`));
  fill(drawer, closing(selection), h("div", { class: "tl-details" },
    h("h2", {}, span.part && h("span", { class: "tl-swatch", style: { background: `var(--p-${span.part})` } }), span.finding ? span.name : meaning?.title ?? span.name),
    h("div", {}, facts(rows)), parts.length ? section("its account", h("ul", { class: "tl-list" }, parts)) : null));
}

export { closing };
