// The drawer about a range: totals by name, by track and by part, and how busy the devices were.

import { fill, h } from "../../ui/dom.js";
import { count, duration, many, share } from "../../text/format.js";
import { shortName } from "../../text/names.js";
import { part } from "../../text/parts.js";
import { closing } from "../details.js";
import { joined, joinedParts } from "./totals.js";

/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {{ title: string, key: string, show: (value: any, row: any) => any, isNumber: boolean }} Column */

/** @param {string} title @param {string} key @param {(value: any) => any} show @returns {Column} */
const number = (title, key, show) => ({ title, key, show, isNumber: true });
/** @param {string} title @param {string} key @param {(value: any, row: any) => any} show @returns {Column} */
const text = (title, key, show) => ({ title, key, show, isNumber: false });

const NAMED_DEVICES = 3;
const BY_NAME = [
  text("name", "name", (value, row) => h("span", { "data-tip": `${value}\n${row.kind}` }, shortName(value))),
  number("count", "count", count), number("total", "total_ns", duration), number("self", "self_ns", duration),
  number("mean", "mean_ns", duration), number("longest", "max_ns", duration),
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
  const own = (/** @type {number} */ rank) => tracks.filter((each) => each.rank === rank).map((each) => each.track);
  const times = (/** @type {number} */ rank) => /** @type {[bigint, bigint]} */ ([timeline.ownTime(rank, start), timeline.ownTime(rank, end)]);
  const found = joined(await Promise.all(ranks.map(async (rank) => ({ rank, found: await timeline.ask.range(rank, ...times(rank), own(rank)) }))));
  if (!isWanted()) return;
  const busy = busyWords(found.devices);
  title.textContent = `${duration(end - start)} selected on ${many(tracks.length, "track")}${ranks.length > 1 ? ` of ${many(ranks.length, "rank")}` : ""}, ${many(found.events, "event")}${busy ? ` · ${busy}` : ""}`;
  const views = /** @type {[string, () => HTMLElement][]} */ ([
    ["by name", () => table(BY_NAME, found.names, "self_ns", (row) => timeline.onSearch(row.name))],
    ["by track", () => table(BY_TRACK, found.tracks, "busy_ns")],
  ]);
  views.push(["by part", () => {
    const place = h("div", {}, "Working out the account…");
    Promise.all(ranks.map(async (rank) => (await timeline.ask.parts(rank, ...times(rank))).parts)).then(
      (all) => fill(place, all.some((parts) => parts.length) ? table(BY_PART, joinedParts(all), "ns") : "No step reaches into this range, so it has no account."),
      (error) => fill(place, error instanceof Error ? error.message : String(error)),
    );
    return place;
  }]);
  const content = h("div", {});
  const buttons = views.map(([name], at) => h("button", { type: "button", "aria-pressed": String(at === 0), onclick: () => choose(at) }, name));
  const choose = (/** @type {number} */ at) => {
    buttons.forEach((button, each) => button.setAttribute("aria-pressed", String(each === at)));
    fill(content, views[at][1]());
  };
  const cut = found.names_total > found.names.length ? h("p", {}, `The ${count(found.names.length)} with the most time of ${count(found.names_total)} names.`) : null;
  fill(place, h("div", { class: "tl-tabs" }, buttons), content, cut);
  choose(0);
}
