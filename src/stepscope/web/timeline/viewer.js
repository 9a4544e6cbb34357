// Puts the viewer together: what the link asks for, the ranks, and the rows that come later.

import { isLeft } from "../shell/api.js";
import { h } from "../ui/dom.js";
import { count } from "../text/format.js";
import { showHelp } from "./help.js";
import { Evidence } from "./act/evidence.js";
import { Keys } from "./act/keys.js";
import { clockShort } from "./lines.js";
import { readPlace, writePlace } from "./link.js";
import { listen } from "./act/pointer.js";
import { Search } from "./act/search.js";
import { Selection } from "./act/selection.js";
import { eventsOf, layerOf } from "./net/source.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("./types").Layout} Layout */

const LINK_AFTER_MS = 350;
const ASK_FIRST_FROM = 4_000_000; // events: from here on the account is made only when it is asked for
const LAYERS = /** @type {Record<string, string>} */ ({
  steps: "Steps", phases: "Phases", account: "Account", path: "Critical path", findings: "Findings",
});
const SLOW = new Set(["account", "path", "findings"]);
const MANY_TRACKS = 60;
const RANKS_AT_ONCE = 16; // that are read by one click
const FOLDED_IN_LINK = 300;
const ALL = "all"; // instead of every single one in the link

/**
 * Shows the trace in the element; returns how to end it.
 * @param {HTMLElement} root @param {import("../types").Context} context @param {Promise<Layout>} asked the layout, on its way
 */
export async function start(root, context, asked) {
  const place = readPlace(context.params);
  const timeline = new Timeline(root, context);
  const selection = new Selection(timeline);
  const search = new Search(timeline, selection);
  const evidence = new Evidence(timeline, selection, search);
  const keys = new Keys(timeline, selection, search, evidence, () => showHelp(root));
  const told = /** @type {any} */ (window); // where the tests and the benchmark look
  let timer = 0;
  let isRestored = false;
  const stop = () => {
    clearTimeout(timer);
    keys.stop();
    timeline.stop();
    if (told.stepscopeTimeline === timeline) delete told.stepscopeTimeline;
    if (told.stepscopeEvidence === evidence) delete told.stepscopeEvidence;
  };
  context.api.signal.addEventListener("abort", stop); // also while it still begins
  timeline.onChange = () => {
    if (!isRestored) return; // the link still says more than what has come
    clearTimeout(timer);
    timer = window.setTimeout(() => context.setParams(linkOf(timeline, selection, search), { replace: true }), LINK_AFTER_MS);
  };
  listen(timeline, selection, keys);
  listenToButtons(timeline, root, context);
  try {
    const layout = await asked;
    open(timeline, layout, place);
    if (layout.ranks.length > 1) offerRanks(timeline, layout.rank);
    if (layout.ranks.length > 1 && context.rank === null) offerAll(timeline, context, layout.ranks.length);
    told.stepscopeTimeline = timeline;
    told.stepscopeEvidence = evidence;
    timeline.elements.search.value = place.q;
    if (place.q) search.run(place.q);
    await restore(timeline, selection, place, layout);
    if (place.events) await evidence.open(place.events, place.facts, place.event === null ? null : { rank: place.of, id: place.event });
    isRestored = true;
    timeline.onChange();
  } catch (error) {
    stop();
    throw error;
  }
  return stop;
}

/** @param {Timeline} timeline @param {HTMLElement} root @param {import("../types").Context} context */
function listenToButtons(timeline, root, context) {
  const { buttons, filter } = timeline.elements;
  buttons.help.addEventListener("click", () => showHelp(root));
  buttons.whole.addEventListener("click", () => {
    timeline.viewport.reset();
    timeline.onChange();
    timeline.invalidate();
  });
  buttons.fold.addEventListener("click", () => timeline.foldAll());
  buttons.download.setAttribute("href", context.api.url(`api/runs/${encodeURIComponent(context.run)}/chrome`, { rank: context.rank }));
  filter.addEventListener("input", () => {
    timeline.arrangement.filter = filter.value;
    timeline.arrange();
  });
}

/** With all ranks in view, the file for Perfetto has all of them. @param {Timeline} timeline @param {import("../types").Context} context @param {number} ranks */
function offerAll(timeline, context, ranks) {
  const { download } = timeline.elements.buttons;
  download.setAttribute("href", context.api.url(`api/runs/${encodeURIComponent(context.run)}/chrome`, { rank: "all" }));
  download.dataset.tip = `Downloads a Chrome trace of all ${count(ranks)} ranks on one clock: drop it on ui.perfetto.dev or chrome://tracing`;
}

/** One click reads the other ranks, and puts all of them below one another. @param {Timeline} timeline @param {number} beside */
function offerRanks(timeline, beside) {
  const button = timeline.elements.buttons.ranks;
  const unread = () => timeline.ranks.filter((rank) => !rank.layout);
  const tell = () => {
    const left = unread().length;
    button.hidden = left === 0;
    button.textContent = left > RANKS_AT_ONCE ? `Next ${RANKS_AT_ONCE} ranks` : left + 1 === timeline.ranks.length ? "All ranks" : "Other ranks";
  };
  button.addEventListener("click", async () => {
    button.disabled = true;
    if (!timeline.arrangement.allFolded) timeline.foldAll();
    for (const rank of unread().slice(0, RANKS_AT_ONCE)) await unfold(timeline, rank, beside);
    button.disabled = false;
  });
  timeline.onRank = tell;
  tell();
}

/** The ranks and the selection of the link. @param {Timeline} timeline @param {Selection} selection @param {import("./link.js").Place} place @param {Layout} layout */
async function restore(timeline, selection, place, layout) {
  for (const number of place.open) {
    const rank = timeline.ranks.find((each) => each.rank === number);
    if (rank && !rank.layout) await unfold(timeline, rank, layout.rank);
  }
  if (place.event !== null) {
    const rank = timeline.ranks.find((each) => each.rank === (place.of ?? layout.rank));
    if (rank && !rank.layout) await unfold(timeline, rank, layout.rank);
    if (rank?.layout) await selection.go(rank.rank, place.layer, place.event);
  } else if (place.from !== null && place.to !== null) {
    selection.chooseRange(timeline.since(place.from), timeline.since(place.to), tracksOf(place.tracks, timeline));
  }
}

/** @param {Timeline} timeline @param {Layout} layout @param {import("./link.js").Place} place */
function open(timeline, layout, place) {
  const { viewport } = timeline;
  const zero = layout.start_ns;
  viewport.high = Math.max(layout.end_ns - zero, 1);
  timeline.zero = zero;
  if (place.start !== null && place.end !== null && place.end > place.start) viewport.show(timeline.since(place.start), timeline.since(place.end));
  else viewport.reset();
  timeline.arrangement.filter = timeline.elements.filter.value = place.filter;
  timeline.arrangement.pinned = place.pinned;
  timeline.arrangement.order = place.order;
  timeline.marked.marks = place.marks.map((mark) => ({ ...mark, start: timeline.since(mark.start), end: timeline.since(mark.end) }));
  timeline.arrangement.allFolded = place.folded.includes(ALL);
  timeline.arrangement.folded = new Set(place.folded.filter((key) => key !== ALL));
  timeline.ranks = layout.ranks.map((rank) => (rank === layout.rank
    ? { rank, layout, source: eventsOf(layout, zero), layers: [], notes: [], counters: [] }
    : { rank, layout: null, source: null, layers: [], notes: [], counters: [] }));
  timeline.ranks.sort((a, b) => Number(b.rank === layout.rank) - Number(a.rank === layout.rank) || a.rank - b.rank);
  timeline.onUnfoldRank = (rank) => unfold(timeline, rank, layout.rank);
  timeline.onNote = (key) => {
    const rank = timeline.ranks.find((each) => key.startsWith(`r${each.rank}/`));
    if (rank?.layout) addLayers(timeline, rank, ["account", "path", "findings"], true);
  };
  foldMany(timeline, layout);
  timeline.foldNew(timeline.ranks[0], false);
  if (!layout.events) timeline.elements.stage.append(h("p", { class: "tl-message" }, "The recording holds no events. The Doctor page says why that may be."));
  timeline.tell(layout.ranks.length > 1 ? `${count(layout.events_of_all)} events of ${count(layout.ranks.length)} ranks` : `${count(layout.events)} events`);
  timeline.resize();
  timeline.arrange();
  addLayers(timeline, timeline.ranks[0], layout.layers);
}

/** With very many tracks, those further down begin as one row. @param {Timeline} timeline @param {Layout} layout */
function foldMany(timeline, layout) {
  if (timeline.arrangement.folded.size || timeline.arrangement.allFolded) return; // as the link says
  let rows = 0;
  for (const group of layout.groups) {
    for (const track of group.tracks) {
      rows += track.rows;
      if (rows > MANY_TRACKS * 4 && track.rows > 1) timeline.arrangement.folded.add(`r${layout.rank}/t${track.id}`);
    }
  }
}

/** Another rank beside the one that is shown. @param {Timeline} timeline @param {import("./lines.js").RankShown} rank @param {number} beside */
async function unfold(timeline, rank, beside) {
  timeline.tell(`Reading rank ${rank.rank}…`);
  try {
    rank.layout = await timeline.ask.layout(rank.rank, beside);
    rank.source = eventsOf(rank.layout, timeline.zero);
    const { viewport } = timeline;
    const isWhole = viewport.start <= viewport.low && viewport.end >= viewport.high;
    viewport.low = Math.min(viewport.low, rank.layout.start_ns + rank.source.shift);
    viewport.high = Math.max(viewport.high, rank.layout.end_ns + rank.source.shift);
    if (isWhole) viewport.reset(); // whoever looks at everything goes on doing so
    timeline.foldNew(rank, false);
    timeline.arrange();
    timeline.onRank();
    timeline.tell(clockShort(rank.rank, rank.layout.clock));
    addLayers(timeline, rank, rank.layout.layers);
  } catch (error) {
    if (!isLeft(error)) timeline.tell(error instanceof Error ? error.message : String(error), true);
  }
}

/** Rows that the server works out: they come when they are ready. @param {Timeline} timeline @param {import("./lines.js").RankShown} rank @param {string[]} layers @param {boolean} [isAsked] by a click */
async function addLayers(timeline, rank, layers, isAsked = false) {
  timeline.arriving += 1;
  await arrived(timeline, rank, layers, isAsked);
  timeline.arriving -= 1;
}

/** @param {Timeline} timeline @param {import("./lines.js").RankShown} rank @param {string[]} layers @param {boolean} isAsked */
async function arrived(timeline, rank, layers, isAsked) {
  const layout = /** @type {Layout} */ (rank.layout);
  if (!isAsked) await timeline.painted;
  const counters = isAsked ? null : addCounters(timeline, rank);
  for (const name of layers) {
    if (SLOW.has(name) && layout.events > ASK_FIRST_FROM && !isAsked) {
      rank.notes = ["Show the account, the critical path and the findings (takes a while)"];
      timeline.arrange();
      continue;
    }
    const source = layerOf(layout, name, timeline.zero);
    if (isAsked) {
      rank.notes = ["Working out the account, the critical path and the findings…"];
      timeline.arrange();
    }
    try {
      const found = await timeline.ask.layer(source);
      if (isAsked) rank.notes = [];
      if (found.rows.length) rank.layers.push({ name, title: LAYERS[name] ?? name, source, rows: found.rows });
      timeline.arrange();
    } catch (error) {
      if (isAsked) rank.notes = [];
      if (!isLeft(error)) timeline.tell(error instanceof Error ? error.message : String(error), true);
    }
  }
  await counters;
}

/** @param {Timeline} timeline @param {import("./lines.js").RankShown} rank */
async function addCounters(timeline, rank) {
  try {
    rank.counters = (await timeline.ask.counters(rank.rank)).counters;
    timeline.foldNew(rank, true);
    timeline.arrange();
  } catch (error) {
    if (!isLeft(error)) timeline.tell(error instanceof Error ? error.message : String(error), true);
  }
}

/** @param {Timeline} timeline @param {Selection} selection @param {Search} search */
function linkOf(timeline, selection, search) {
  const { viewport, arrangement, marked } = timeline;
  const { chosen } = selection;
  const own = (/** @type {number} */ time) => timeline.moment(time);
  const isWhole = viewport.start <= viewport.low && viewport.end >= viewport.high;
  return writePlace({
    start: own(viewport.start), end: own(viewport.end), event: chosen?.id ?? null, of: chosen && chosen.rank !== timeline.ranks[0].rank ? chosen.rank : null, layer: chosen?.layer ?? "events",
    from: marked.range ? own(marked.range.start) : null, to: marked.range ? own(marked.range.end) : null, tracks: marked.range ? selection.tracks.map((each) => `${each.rank}.${each.track}`) : [],
    rank: null, open: timeline.ranks.slice(1).filter((rank) => rank.layout && !arrangement.folded.has(`r${rank.rank}`)).map((rank) => rank.rank), pinned: arrangement.pinned, folded: arrangement.allFolded ? [ALL] : [...arrangement.folded].slice(0, FOLDED_IN_LINK), filter: arrangement.filter, q: search.text,
    marks: marked.marks.map((mark) => ({ ...mark, start: own(mark.start), end: own(mark.end) })), order: arrangement.order, events: "", facts: "",
  }, isWhole);
}

/** @param {string[]} words @param {Timeline} timeline */
function tracksOf(words, timeline) {
  const found = words.map((word) => word.split(".").map(Number)).filter(([rank, track]) => Number.isInteger(rank) && Number.isInteger(track));
  if (found.length) return found.map(([rank, track]) => ({ rank, track }));
  return timeline.lines.filter((line) => line.track !== null && line.source).map((line) => ({ rank: line.source?.rank ?? 0, track: line.track ?? 0 }));
}
