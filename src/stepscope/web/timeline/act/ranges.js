// The drawer about a range: totals by name, category, module, track and part, how busy the devices were, and what else can be done with it.

import { isLeft } from "../../shell/api.js";
import { entry } from "../../shell/pages.js";
import { fill, h } from "../../ui/dom.js";
import { count, duration, many, share } from "../../text/format.js";
import { shortName } from "../../text/names.js";
import { part } from "../../text/parts.js";
import { closing } from "../details.js";
import { joined, joinedNames, joinedParts, pivotRows, rangeQuery } from "./totals.js";

/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {{ title: string, key: string, show: (value: any, row: any) => any, isNumber: boolean }} Column */

/** @param {string} title @param {string} key @param {(value: any) => any} show @returns {Column} */
const number = (title, key, show) => ({ title, key, show, isNumber: true });
/** @param {string} title @param {string} key @param {(value: any, row: any) => any} show @returns {Column} */
const text = (title, key, show) => ({ title, key, show, isNumber: false });

const NAMED_DEVICES = 3;
const MOST_FILES = 8; // ranks whose events are offered as a file
const BY_NAME = [
  text("name", "name", (value, row) => h("span", { "data-tip": [value, row.kind].filter(Boolean).join("\n") }, shortName(value))),
  number("count", "count", count), number("total", "total_ns", duration), number("self", "self_ns", duration),
  number("per step", "step_ns", duration), number("of the range", "share", share), number("mean", "mean_ns", duration), number("longest", "max_ns", duration),
];
const BY_TRACK = [
  text("track", "title", (value) => value), number("events", "count", count), number("busy", "busy_ns", duration), number("busy share", "busy_share", share),
];
const BY_PART = [
  text("part", "part", (value) => [h("span", { class: "tl-swatch tl-bar-of", style: { width: "10px", background: `var(--p-${value})` } }), ` ${part(value).title}`]),
  number("time", "ns", duration), number("share", "share", share), text("meaning", "part", (value) => part(value).meaning),
];

/** A table that sorts by any column. @param {Column[]} columns @param {any[]} rows @param {string} first @param {(row: any) => void} [onRow] */
export function table(columns, rows, first, onRow) {
  let by = first;
  let isUp = false;
  const body = h("tbody", {});
  const draw = () => {
    const ordered = [...rows].sort((a, b) => (isUp ? 1 : -1) * (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0));
    fill(body, ordered.map((row) => h("tr", {}, columns.map((column, at) => {
      const content = column.show(row[column.key], row);
      return h("td", { class: column.isNumber ? "number" : "name" }, at === 0 && onRow ? h("button", { type: "button", class: "tl-link", onclick: () => onRow(row) }, content) : content);
    }))));
  };
  const head = columns.map((column) => h("th", { class: column.isNumber ? "number" : "" }, h("button", {
    type: "button", class: "tl-link",
    onclick: () => { isUp = by === column.key ? !isUp : !column.isNumber; by = column.key; draw(); },
  }, column.title)));
  draw();
  return h("table", {}, h("thead", {}, h("tr", {}, head)), body);
}

/** How busy each device was, or of many the least and the most. @param {{ title: string, busy_share: number }[]} devices */
export function busyWords(devices) {
  if (devices.length <= NAMED_DEVICES) return devices.map((each) => `${each.title} ${share(each.busy_share)} busy`).join(", ");
  const ordered = [...devices].sort((a, b) => a.busy_share - b.busy_share);
  const [least, most] = [ordered[0], ordered[ordered.length - 1]];
  return `${count(devices.length)} devices, from ${share(least.busy_share)} busy (${least.title}) to ${share(most.busy_share)} (${most.title})`;
}

/** Of one range, what is asked of each rank. @typedef {{ ranks: number[], times: (rank: number) => [bigint, bigint], own: (rank: number) => number[] }} Asked */

/**
 * @param {HTMLElement} drawer @param {Selection} selection @param {number} start @param {number} end
 * @param {{ rank: number, track: number }[]} tracks @param {() => boolean} isWanted
 */
export async function showRange(drawer, selection, start, end, tracks, isWanted) {
  const { timeline } = selection;
  const ranks = [...new Set(tracks.map((each) => each.rank))];
  if (!ranks.length) ranks.push(timeline.ranks[0].rank);
  const title = h("h2", {}, `${duration(end - start)} selected on ${many(tracks.length, "track")}`);
  const place = h("div", {}, h("p", {}, "Adding up…"));
  fill(drawer, closing(selection), h("div", { class: "tl-range" }, title, place));
  /** @type {Asked} */
  const asked = {
    ranks,
    own: (rank) => tracks.filter((each) => each.rank === rank).map((each) => each.track),
    times: (rank) => [timeline.ownTime(rank, start), timeline.ownTime(rank, end)],
  };
  const found = joined(await Promise.all(ranks.map(async (rank) => ({ rank, found: await timeline.ask.range(rank, ...asked.times(rank), asked.own(rank)) }))));
  if (!isWanted()) return;
  const busy = busyWords(found.devices);
  title.textContent = `${duration(end - start)} selected on ${many(tracks.length, "track")}${ranks.length > 1 ? ` of ${many(ranks.length, "rank")}` : ""}, ${many(found.events, "event")}${busy ? ` · ${busy}` : ""}`;
  const named = found.steps ? BY_NAME : BY_NAME.filter((column) => column.key !== "step_ns");
  const columns = tracks.length > 1 ? named.map((column) => (column.key === "share" ? { ...column, title: "of the tracks' time" } : column)) : named;
  const rowsOf = (/** @type {import("./totals.js").NameTotal[]} */ names) => pivotRows(names, found.steps, end - start, tracks.length);
  const grouped = (/** @type {string} */ by, /** @type {(name: string) => string} */ words) => later(async () => {
    const all = await Promise.all(ranks.map((rank) => timeline.ask.pivot(rank, ...asked.times(rank), asked.own(rank), by)));
    const rows = rowsOf(joinedNames(all.flatMap((each) => each.names)));
    return [table([{ ...columns[0], title: by }, ...columns.slice(1)], rows, "self_ns", words("") === "" ? undefined : (row) => timeline.onSearch(words(row.name))), leftOut(rows.length, Math.max(...all.map((each) => each.names_total)), by)];
  });
  const views = /** @type {[string, () => import("../../ui/dom.js").Content][]} */ ([
    ["by name", () => [table(columns, rowsOf(found.names), "self_ns", (row) => timeline.onSearch(row.name)), leftOut(found.names.length, found.names_total, "name")]],
    ["by category", () => grouped("category", () => "")],
    ["by module", () => grouped("module", (name) => `scope="${name}"`)],
    ["by track", () => table(BY_TRACK, found.tracks, "busy_ns")],
    ["by part", () => later(async () => {
      const all = await Promise.all(ranks.map(async (rank) => (await timeline.ask.parts(rank, ...asked.times(rank))).parts));
      return all.some((parts) => parts.length) ? table(BY_PART, joinedParts(all), "ns") : "No step reaches into this range, so it has no account.";
    })],
  ]);
  const content = h("div", {});
  const buttons = views.map(([name], at) => h("button", { type: "button", "aria-pressed": String(at === 0), onclick: () => choose(at) }, name));
  const choose = (/** @type {number} */ at) => {
    buttons.forEach((button, each) => button.setAttribute("aria-pressed", String(each === at)));
    fill(content, views[at][1]());
  };
  fill(place, h("div", { class: "tl-tabs" }, buttons, h("span", { class: "tl-grow" }), ways(selection, start, end, asked)), content);
  choose(0);
}

/** What comes later. @param {() => Promise<import("../../ui/dom.js").Content>} make */
function later(make) {
  const place = h("div", {}, "Adding up…");
  make().then((content) => fill(place, content), (error) => fill(place, error instanceof Error ? error.message : String(error)));
  return place;
}

/** @param {number} shown @param {number} total @param {string} of */
function leftOut(shown, total, of) {
  return total > shown ? h("p", {}, `The ${count(shown)} with the most time of ${many(total, of)}.`) : null;
}

/** Where a range leads: its flame graph, its events as a file, the query for them. @param {Selection} selection @param {number} start @param {number} end @param {Asked} asked */
function ways(selection, start, end, asked) {
  const { timeline } = selection;
  const { context } = timeline;
  const { ranks } = asked;
  const flame = flameLink(timeline, start, end, ranks[0]);
  const files = ranks.slice(0, MOST_FILES).map((rank) => h("a", {
    class: "tl-button", href: timeline.ask.rangeFile(rank, ...asked.times(rank), asked.own(rank)), download: "",
    "data-tip": "Downloads the events that reach into the range as a Chrome trace: stepscope, ui.perfetto.dev and chrome://tracing open it",
  }, ranks.length > 1 ? `Chrome JSON, rank ${rank}` : "Chrome JSON"));
  const copy = h("button", { type: "button", "data-tip": "Copies the query that gives exactly these events", onclick: () => void copySql() }, "Copy as SQL");
  const copySql = async () => {
    try {
      const wheres = await Promise.all(ranks.map(async (rank) => (await timeline.ask.where(rank, ...asked.times(rank), asked.own(rank))).where));
      const query = rangeQuery(wheres);
      const open = h("a", { class: "tl-button", href: context.link("sql", { query, rank: null }), "data-query": query }, "Open in SQL");
      copy.parentElement?.querySelector("[data-query]")?.remove();
      copy.after(open);
      const isCopied = await navigator.clipboard?.writeText(query).then(() => true, () => false);
      timeline.tell(isCopied ? "Copied: a query for these events." : "The browser does not let the page copy: open the query in SQL.");
    } catch (error) {
      if (!isLeft(error)) timeline.tell(error instanceof Error ? error.message : String(error), true);
    }
  };
  return [flame && h("a", { class: "tl-button", href: flame, "data-tip": "The flame graph of this range" }, "Flame graph"), files, copy];
}

/** The flame graph of a range: times as in the viewer's own link. @param {import("../timeline.js").Timeline} timeline @param {number} start @param {number} end @param {number} rank */
function flameLink(timeline, start, end, rank) {
  if (!entry("flame")) return null;
  const [from, to] = [timeline.ownTime(rank, start), timeline.ownTime(rank, end)].map(String);
  return timeline.context.link("flame", { from, to, rank: timeline.ranks.length > 1 ? rank : timeline.context.rank });
}
