// What a selected event waited for, what waited for it, its place on the critical path, and the same collective on the other ranks in view.

import { isLeft } from "../../shell/api.js";
import { fill, h } from "../../ui/dom.js";
import { duration } from "../../text/format.js";
import { shortName } from "../../text/names.js";

/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {import("../types").WaitShown} WaitShown */
/** @typedef {import("../types").CallShown} CallShown */

const BEFORE = /** @type {Record<string, (wait: WaitShown) => string>} */ ({
  launch: (wait) => `launched ${duration(wait.ns)} before by`,
  stream: (wait) => (wait.ns ? `${duration(wait.ns)} after the work before it on its stream:` : "right after the work before it on its stream:"),
  device: (wait) => `waits ${duration(wait.ns)} for the device:`,
  event: () => "waits for the event after",
});
const AFTER = /** @type {Record<string, (wait: WaitShown) => string>} */ ({
  launch: (wait) => `begins ${duration(wait.ns)} after the launch:`,
  stream: (wait) => (wait.ns ? `${duration(wait.ns)} later on its stream:` : "right after it on its stream:"),
  sync: () => "the host waits for it in",
  event: () => "another stream waits for it:",
});

/** The one that came last: all others wait for it. @param {CallShown[]} calls */
export function lastToCome(calls) {
  return calls.reduce((last, call) => (call.start_ns > last.start_ns ? call : last));
}

/** @param {Selection} selection @param {import("../types").EventShown} event @param {number} rank @param {HTMLElement} place @param {() => boolean} isWanted */
export async function showRelated(selection, event, rank, place, isWanted) {
  const { timeline } = selection;
  const open = timeline.ranks.filter((each) => each.layout).map((each) => each.rank);
  const parts = [h("div", {}), h("div", {})];
  fill(place, parts);
  await Promise.all([
    shown(parts[0], isWanted, async () => {
      const found = await timeline.ask.waits(rank, event.id);
      if (!isWanted()) return;
      timeline.marked.waits = [...found.before.map((wait) => ({ ...wait, direction: /** @type {const} */ ("from") })), ...found.after.map((wait) => ({ ...wait, direction: /** @type {const} */ ("to") }))];
      timeline.invalidate();
      fill(parts[0], waitSections(found, (id) => () => selection.go(rank, "events", id), (id) => () => selection.go(rank, "path", id)));
    }),
    open.length > 1 && event.role === "collective" && shown(parts[1], isWanted, async () => {
      const { calls } = await timeline.ask.meeting(rank, event.id, open, timeline.ranks[0].rank);
      if (!isWanted() || !calls.length) return;
      timeline.marked.meeting = calls;
      timeline.invalidate();
      fill(parts[1], meetingSection(calls, rank, (call) => () => selection.go(call.rank, "events", call.id)));
    }),
  ]);
}

/** @param {HTMLElement} place @param {() => boolean} isWanted @param {() => Promise<void>} make */
async function shown(place, isWanted, make) {
  try {
    await make();
  } catch (error) {
    if (!isLeft(error) && isWanted()) fill(place, h("p", {}, error instanceof Error ? error.message : String(error)));
  }
}

/** @param {string} words @param {() => void} action @param {string} [tip] */
function link(words, action, tip) {
  return h("button", { type: "button", class: "tl-link", "data-tip": tip ?? null, onclick: action }, words);
}

/** @param {import("../types").WaitsShown} found @param {(id: number) => () => void} go @param {(id: number) => () => void} goPath */
function waitSections(found, go, goPath) {
  const rows = (/** @type {WaitShown[]} */ waits, /** @type {typeof BEFORE} */ words) => waits.map((wait) => h("li", { "data-wait": wait.id },
    `${(words[wait.why] ?? words.event)(wait)} `, link(shortName(wait.name), go(wait.id), `${wait.name}\n${duration(wait.dur_ns)}`),
    wait.decides ? h("small", { class: "tl-decides" }, " decides") : null));
  const list = (/** @type {string} */ title, /** @type {import("../../ui/dom.js").Content[]} */ items) => (items.length ? h("div", {}, h("h3", {}, title), h("ul", { class: "tl-list tl-waits" }, items)) : null);
  return [list("waited for", rows(found.before, BEFORE)), list("what waited for it", rows(found.after, AFTER)), list("critical path", pathRows(found.path, goPath))];
}

/** @param {import("../types").WaitsShown["path"]} path @param {(id: number) => () => void} go */
function pathRows(path, go) {
  if (!path) return [];
  const of = path.step === null ? "" : ` of step ${path.step}`;
  const near = (/** @type {string} */ words, /** @type {{ id: number, name: string } | null} */ other) => other && h("li", {}, `${words} `, link(shortName(other.name), go(other.id), other.name));
  return [h("li", {}, "decides ", link(duration(path.ns), go(path.id), "Its slice of the critical path"), of), near("after", path.before), near("before", path.after)];
}

/** @param {CallShown[]} calls @param {number} rank @param {(call: CallShown) => () => void} go */
function meetingSection(calls, rank, go) {
  const last = lastToCome(calls);
  const rows = [...calls].sort((a, b) => a.start_ns - b.start_ns).map((call) => {
    const words = call === last ? "comes last" : `waits ${duration(last.start_ns - call.start_ns)}`;
    return h("li", { "data-rank": call.rank }, call.rank === rank ? h("b", {}, `rank ${call.rank}`) : link(`rank ${call.rank}`, go(call), "The same collective on this rank"), ` ${words}, ${duration(call.dur_ns)} in it`);
  });
  return h("div", {}, h("h3", {}, "the same collective on the ranks in view"), h("ul", { class: "tl-list" }, rows));
}
