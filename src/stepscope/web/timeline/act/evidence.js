// The events behind a row, a mark or a finding of another page: listed the worst first, stepped through, everything else dimmed.

import { isLeft } from "../../shell/api.js";
import { leftAs } from "../../shell/place.js";
import { entry } from "../../shell/pages.js";
import { fill, h } from "../../ui/dom.js";
import { count, duration, size } from "../../text/format.js";
import { clipped, shortName } from "../../text/names.js";
import { factsOf, homeOf, titleOf } from "./handles.js";
import { joinedBins } from "./search.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {import("./search.js").Search} Search */
/** @typedef {import("../types").EventFound} EventFound */
/** @typedef {import("../types").EventsFound} EventsFound */

const BINS = 512;
const ROOM = 4; // times as long as the event is what is shown around it
const LEAST_NS = 2_000;
/** The list, and what it is a list of. */
export class Evidence {
  /** @param {Timeline} timeline @param {Selection} selection @param {Search} search */
  constructor(timeline, selection, search) {
    this.timeline = timeline;
    this.selection = selection;
    this.search = search;
    /** @type {EventsFound | null} */
    this.found = null;
    this.at = -1;
    this.of = "";
    this.going = Promise.resolve();
    const { evidence } = timeline.elements;
    evidence.previous.addEventListener("click", () => this.step(-1));
    evidence.next.addEventListener("click", () => this.step(1));
    evidence.close.addEventListener("click", () => this.close());
    evidence.fold.addEventListener("click", () => this.fold(!evidence.list.hidden));
    timeline.onLit = () => this.light();
  }

  get isOpen() {
    return this.of !== "";
  }

  /**
   * Asks for the events of a handle and shows them; goes to the worst, or to the one that the link has.
   * @param {string} of @param {string} facts as JSON @param {{ rank: number | null, id: number } | null} chosen
   */
  async open(of, facts, chosen) {
    const { timeline } = this;
    this.of = of;
    this.show(true);
    this.tell(of, facts);
    timeline.elements.evidence.place.textContent = "looking …";
    try {
      const found = await timeline.ask.events(of, facts, timeline.context.rank);
      if (this.of !== of) return;
      this.found = found;
      if (found.title) this.head(found.title);
      this.list();
      this.light();
      await this.goTo(chosen);
    } catch (error) {
      if (isLeft(error)) return;
      timeline.elements.evidence.place.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** @param {{ rank: number | null, id: number } | null} chosen */
  async goTo(chosen) {
    const events = this.found?.events ?? [];
    const at = chosen ? events.findIndex((each) => each.id === chosen.id && (chosen.rank === null || chosen.rank === each.rank)) : 0;
    if (at < 0 || !events.length) this.tellPlace();
    else await this.go(at, chosen === null);
  }

  /** The heading: the way back, and what the events are of. @param {string} of @param {string} facts */
  tell(of, facts) {
    const { evidence } = this.timeline.elements;
    const [kind, name] = [of.slice(0, of.indexOf(":")), of.slice(of.indexOf(":") + 1)];
    const words = titleOf(kind, name, factsOf(facts));
    this.head(words);
    fill(evidence.back, h("a", { class: "tl-button", href: this.home(), "data-tip": "Back to where you came from (Esc)", onclick: (/** @type {Event} */ event) => { event.preventDefault(); this.back(); } }, `‹ ${entry(this.page())?.title ?? "Back"}`));
  }

  /** @param {string} words */
  head(words) {
    const { title } = this.timeline.elements.evidence;
    fill(title, clipped(words, 140));
    title.dataset.tip = words;
  }

  /** The page that one came from, else the one that has rows of this kind. */
  page() {
    const { from } = leftAs();
    return from && from !== "trace" && entry(from) ? from : homeOf(this.of);
  }

  home() {
    return this.timeline.context.link(this.page());
  }

  /** To where one came from, as it was left; a link that someone else sent leads to the page that has such rows. */
  back() {
    const { from } = leftAs();
    if (from && from !== "trace" && entry(from)) history.back();
    else this.timeline.context.go(this.page());
  }

  /** @param {boolean} isOpen */
  show(isOpen) {
    const { evidence } = this.timeline.elements;
    evidence.strip.hidden = !isOpen;
    evidence.list.hidden = !isOpen || evidence.fold.getAttribute("aria-expanded") === "false";
    this.timeline.resize();
  }

  /** @param {boolean} isFolded */
  fold(isFolded) {
    const { evidence } = this.timeline.elements;
    evidence.fold.setAttribute("aria-expanded", String(!isFolded));
    evidence.list.hidden = isFolded;
    this.timeline.resize();
  }

  list() {
    const { found, timeline } = this;
    const { list } = timeline.elements.evidence;
    if (!found) return;
    const rows = found.events.map((event, at) => h("li", {}, h("button", { type: "button", "data-at": at, onclick: () => this.go(at, true) },
      h("b", {}, this.weight(event)), h("span", {}, event.id === null ? "no event" : shortName(event.name)), h("small", {}, this.about(event)))));
    const more = found.total > found.events.length ? h("p", { class: "sub" }, `The worst ${count(found.events.length)} of ${count(found.total)}.`) : null;
    const left = found.ranks_total > found.ranks.length ? h("p", { class: "sub" }, `Of ${count(found.ranks.length)} of ${count(found.ranks_total)} ranks; choose a rank in the header to see its own.`) : null;
    const none = rows.length ? null : h("p", { class: "sub" }, "No event of its own was recorded: the figure was measured elsewhere, or is what is left of a total.");
    const order = rows.length > 1 ? h("p", { class: "sub" }, `The worst first, by ${found.by}.`) : null;
    fill(list, none, order, rows.length ? h("ol", {}, rows) : null, more, left);
    timeline.resize();
  }

  /** @param {EventFound} event */
  weight(event) {
    return this.found?.unit === "bytes" ? size(event.weight) : duration(event.weight || event.dur_ns);
  }

  /** @param {EventFound} event */
  about(event) {
    const several = (this.found?.ranks_total ?? 1) > 1;
    return [several ? `rank ${event.rank}` : "", event.step === null ? "" : `step ${event.step}`, event.thread].filter(Boolean).join(" · ");
  }

  /** The next one, or the one before; from the last on to the first. @param {number} by */
  step(by) {
    const total = this.found?.events.length ?? 0;
    if (!total) return this.going;
    // One after the other: each begins where the one before has ended.
    this.going = this.going.then(() => this.go((this.at + by + total) % total, true));
    return this.going;
  }

  /** @param {number} at @param {boolean} zooms */
  async go(at, zooms) {
    const { timeline, selection } = this;
    const event = this.found?.events[at];
    if (!event) return;
    this.at = at;
    this.tellPlace();
    this.mark();
    await this.search.openRank(event.rank);
    const start = timeline.placeOf(event.rank, event.after_ns);
    if (zooms) this.zoom(start, event.dur_ns);
    if (event.id === null) await selection.chooseRange(start, start + Math.max(1, event.dur_ns), selection.allTracks());
    else await selection.goAt(event.rank, event.id);
    if (zooms) this.reach();
    this.mark();
  }

  /** To the event with some time around it; at first to the step or interval that was asked for. @param {number} start @param {number} dur */
  zoom(start, dur) {
    const { timeline, found } = this;
    const { span } = found ?? {};
    const [low, long] = span && this.at === 0 ? [timeline.placeOf(span.rank, span.after_ns), span.dur_ns] : [start, dur];
    const edge = span && this.at === 0 ? long * 0.03 : Math.max(LEAST_NS, long * ROOM) / 2;
    timeline.viewport.show(low - edge, low + long + edge);
    timeline.invalidate();
  }

  /** A wait may end before the event that it is charged to begins: both are in view. */
  reach() {
    const { viewport } = this.timeline;
    const { chosen } = this.selection;
    if (!chosen || (chosen.start < viewport.end && chosen.start + chosen.dur > viewport.start)) return;
    const edge = viewport.span * 0.1;
    viewport.show(Math.min(viewport.start, chosen.start - edge), Math.max(viewport.end, Math.min(chosen.start + chosen.dur, chosen.start + viewport.span) + edge));
    this.timeline.onChange();
    this.timeline.invalidate();
  }

  tellPlace() {
    const { evidence } = this.timeline.elements;
    const total = this.found?.total ?? 0;
    const shown = this.found?.events.length ?? 0;
    evidence.place.textContent = total ? `${this.at < 0 ? "" : `${count(this.at + 1)} of `}${count(total)}${this.at < 0 ? " events" : ""}` : "no events";
    evidence.next.disabled = evidence.previous.disabled = shown < 1;
    for (const button of evidence.list.querySelectorAll("button[data-at]")) {
      const isHere = Number(/** @type {HTMLElement} */ (button).dataset.at) === this.at;
      if (isHere) {
        button.setAttribute("aria-current", "true");
        button.scrollIntoView({ block: "nearest" });
      } else button.removeAttribute("aria-current");
    }
  }

  /** Bands over the picture, where the events are. */
  mark() {
    const { timeline } = this;
    timeline.marked.bands = (this.found?.events ?? []).map((event, at) => {
      const start = timeline.placeOf(event.rank, event.after_ns);
      return { start, end: start + event.dur_ns, isCurrent: at === this.at };
    });
    timeline.invalidate();
  }

  /** Everything else is dimmed, as long as nothing is searched for. */
  light() {
    const { timeline, found } = this;
    if (!found || this.search.text.trim()) return;
    for (const [rank, numbers] of Object.entries(found.names)) {
      if (!numbers.length) continue;
      const lit = new Uint8Array(Math.max(...numbers) + 1);
      for (const number of numbers) lit[number] = 1;
      timeline.lit.set(rank, lit);
    }
    timeline.minimap.hits = this.bins();
    this.mark();
  }

  bins() {
    const { low, high } = this.timeline.viewport;
    const histogram = new Array(BINS).fill(0);
    for (const { start } of this.timeline.marked.bands) histogram[Math.min(BINS - 1, Math.max(0, Math.floor(((start - low) / (high - low)) * BINS)))] += 1;
    return joinedBins([{ histogram, start: low, end: high }], low, high);
  }

  /** Whether what is selected is one of the list, or nothing. */
  get isAtRest() {
    const { chosen, timeline } = this.selection;
    const event = this.found?.events[this.at];
    return chosen ? chosen.id === event?.id && chosen.layer === "events" : timeline.marked.range === null || event?.id === null;
  }

  close() {
    const { timeline } = this;
    this.of = "";
    this.found = null;
    this.at = -1;
    timeline.marked.bands = [];
    timeline.lit.clear();
    timeline.minimap.hits = null;
    this.show(false);
    timeline.context.setParams({ events: null, facts: null }, { replace: true });
    if (this.search.text.trim()) this.search.again();
    timeline.elements.overlay.focus();
  }
}
