// Search over the whole trace and all ranks: how many hits there are and when, the next and the one before, and others dimmed.

import { isLeft } from "../../shell/api.js";
import { count } from "../../text/format.js";
import { HitList } from "./hitlist.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {import("../lines.js").RankShown} RankShown */
/** @typedef {{ count: number, histogram: number[], names: number[] }} Found of one rank */

const BINS = 512;
const FAR_NS = 2 ** 52; // before or after everything

/**
 * When hits of several ranks lie, as bins of all that can be shown.
 * @param {{ histogram: number[], start: number, end: number }[]} found with the times of the first bin's begin and the last one's end
 * @param {number} low @param {number} high
 */
export function joinedBins(found, low, high) {
  const bins = new Array(BINS).fill(0);
  for (const { histogram, start, end } of found) {
    const width = (end - start) / histogram.length;
    histogram.forEach((number, at) => {
      if (!number) return;
      const place = Math.floor(((start + (at + 0.5) * width - low) / (high - low)) * BINS);
      bins[Math.min(BINS - 1, Math.max(0, place))] += number;
    });
  }
  return bins;
}

/** The rank with hits after this one, or before it; from the last on to the first. @param {number[]} ranks @param {Map<number, number>} counts @param {number} rank @param {number} by */
export function nextRank(ranks, counts, rank, by) {
  const at = ranks.indexOf(rank);
  for (let step = 1; step <= ranks.length; step += 1) {
    const next = ranks[(at + by * step + step * ranks.length) % ranks.length];
    if (counts.get(next)) return next;
  }
  return rank;
}

const WAIT_MS = 250;

/** The search box and what it found. */
export class Search {
  /** @param {Timeline} timeline @param {Selection} selection */
  constructor(timeline, selection) {
    this.timeline = timeline;
    this.selection = selection;
    this.text = "";
    this.total = 0;
    /** @type {Map<number, number>} hits by rank */
    this.counts = new Map();
    this.searched = 0; // how many ranks were open when it was searched
    this.going = Promise.resolve();
    this.running = Promise.resolve();
    this.asked = 0;
    this.timer = 0;
    this.list = new HitList(timeline, (rank, id, place) => this.visit(rank, id, place));
    const { search, buttons } = timeline.elements;
    search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.run(search.value), WAIT_MS);
    });
    search.addEventListener("keydown", (event) => this.key(event));
    buttons.next.addEventListener("click", () => this.go(1));
    buttons.previous.addEventListener("click", () => this.go(-1));
    buttons.next.disabled = buttons.previous.disabled = true;
    timeline.beforeFrame.push(() => {
      if (this.text && this.searched && this.openRanks().length !== this.searched) this.again();
    });
    timeline.onSearch = (text) => {
      search.value = text;
      this.run(text);
    };
  }

  get rank() {
    return this.selection.chosen?.rank ?? this.timeline.ranks[0]?.rank ?? 0;
  }

  open() {
    this.timeline.elements.search.focus();
    this.timeline.elements.search.select();
  }

  /** @param {KeyboardEvent} event */
  async key(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      this.timeline.elements.search.value = "";
      this.run("");
      this.timeline.elements.overlay.focus();
    } else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(this.timer);
      if (this.timeline.elements.search.value !== this.text) this.run(this.timeline.elements.search.value);
      await this.running; // also of a search that began by itself a moment ago
      await this.go(event.shiftKey ? -1 : 1);
    }
  }

  openRanks() {
    return this.timeline.ranks.filter((rank) => rank.layout !== null);
  }

  /** @param {string} text */
  run(text) {
    this.running = this.find(text);
    return this.running;
  }

  /** @param {string} text */
  async find(text) {
    const { timeline } = this;
    const turn = (this.asked += 1);
    this.text = text;
    this.total = 0;
    this.counts.clear();
    if (!text.trim()) {
      this.list.clear();
      this.show("", []);
      return;
    }
    timeline.elements.found.textContent = "…";
    try {
      const [all, found] = await Promise.all([timeline.ranks.length > 1 ? timeline.ask.hits(text) : null, this.inOpenRanks()]);
      if (turn !== this.asked) return;
      for (const each of all?.ranks ?? found.map(({ rank, found: { count: number } }) => ({ rank: rank.rank, count: number }))) this.counts.set(each.rank, each.count);
      this.total = [...this.counts.values()].reduce((sum, each) => sum + each, 0);
      this.show(this.words(), found);
      if (this.total) this.list.show(text, this.counts.get(this.rank) ? this.rank : nextRank(timeline.ranks.map((each) => each.rank), this.counts, this.rank, 1), -1);
      else this.list.clear();
    } catch (error) {
      if (isLeft(error) || turn !== this.asked) return;
      this.list.clear();
      this.show(error instanceof Error ? error.message : String(error), []);
    }
  }

  /** After a rank was opened: its hits are lit and marked, too. */
  async again() {
    const turn = this.asked;
    try {
      const found = await this.inOpenRanks();
      if (turn === this.asked) this.show(null, found);
    } catch (error) {
      if (!isLeft(error)) this.timeline.tell(error instanceof Error ? error.message : String(error), true);
    }
  }

  /** @returns {Promise<{ rank: RankShown, found: Found }[]>} */
  inOpenRanks() {
    const ranks = this.openRanks();
    this.searched = ranks.length;
    return Promise.all(ranks.map(async (rank) => ({ rank, found: await this.timeline.ask.search(rank.rank, this.text) })));
  }

  words() {
    if (!this.total) return "nothing found";
    const ranks = [...this.counts.values()].filter(Boolean).length;
    return `${count(this.total)} found${this.counts.size > 1 ? ` in ${ranks === 1 ? "one rank" : `${count(ranks)} ranks`}` : ""}`;
  }

  /** @param {string | null} words null to leave those that are there @param {{ rank: RankShown, found: Found }[]} hits of the ranks that are open */
  show(words, hits) {
    const { timeline } = this;
    const { buttons } = timeline.elements;
    if (words !== null) this.tell(words);
    buttons.next.disabled = buttons.previous.disabled = this.total === 0;
    timeline.lit.clear();
    for (const { rank, found: { names } } of hits) {
      if (!names.length) continue;
      const lit = new Uint8Array(Math.max(...names) + 1);
      for (const name of names) lit[name] = 1;
      timeline.lit.set(`${rank.rank}`, lit);
    }
    timeline.minimap.hits = this.bins(hits);
    timeline.onLit();
    for (const rank of timeline.ranks) rank.hits = timeline.ranks.length > 1 ? this.counts.get(rank.rank) : undefined;
    if (timeline.ranks.length > 1) timeline.arrange();
    timeline.onChange();
    timeline.invalidate();
  }

  /** @param {{ rank: RankShown, found: Found }[]} hits */
  bins(hits) {
    const { low, high } = this.timeline.viewport;
    const placed = hits.flatMap(({ rank, found }) => {
      if (!rank.layout || !rank.source) return [];
      return [{ histogram: found.histogram, start: rank.layout.start_ns + rank.source.shift, end: rank.layout.end_ns + rank.source.shift }];
    });
    return placed.length ? joinedBins(placed, low, high) : null;
  }

  /** The next hit, or the one before, from the selection or else from where the view begins. @param {number} by */
  go(by) {
    // One after the other: each begins where the one before has ended.
    this.going = this.going.then(() => this.step(by));
    return this.going;
  }

  /** One of the list. @param {number} rank @param {number} id @param {number} place counted from 0 */
  visit(rank, id, place) {
    this.going = this.going.then(async () => {
      await this.openRank(rank);
      await this.selection.go(rank, "events", id);
      this.tell(this.placeWords(rank, place + 1));
    });
    return this.going;
  }

  /** @param {string} words */
  tell(words) {
    const { found } = this.timeline.elements;
    found.textContent = words;
    found.dataset.tip = words; // a narrow window cuts it
  }

  /** @param {number} by */
  async step(by) {
    const { timeline, selection } = this;
    if (!this.total) return;
    const turn = this.asked;
    try {
      const { rank, hit } = await this.following(by);
      if (turn !== this.asked) return; // something else is searched for by now
      await selection.go(rank, "events", hit.id);
      if (turn !== this.asked) return;
      this.tell(this.placeWords(rank, hit.place));
      await this.list.show(this.text, rank, hit.place - 1);
    } catch (error) {
      if (!isLeft(error)) timeline.tell(error instanceof Error ? error.message : String(error), true);
    }
  }

  /** The hit that follows in the same rank; after its last one, the first of the next rank. @param {number} by */
  async following(by) {
    const { timeline, selection } = this;
    let { rank } = this;
    const chosen = selection.chosen?.layer === "events" ? selection.chosen : null;
    const at = timeline.ownTime(rank, chosen ? chosen.start : by > 0 ? timeline.viewport.start : timeline.viewport.end);
    let hit = this.counts.get(rank) ? await timeline.ask.found(rank, this.text, at, chosen?.id ?? null, by) : null;
    const next = nextRank(timeline.ranks.map((each) => each.rank), this.counts, rank, by);
    if (!hit || (hit.around && next !== rank)) {
      rank = next;
      await this.openRank(rank);
      hit = await timeline.ask.found(rank, this.text, by > 0 ? -FAR_NS : FAR_NS, null, by);
    }
    return { rank, hit };
  }

  /** @param {number} rank */
  async openRank(rank) {
    const { timeline } = this;
    const shown = timeline.ranks.find((each) => each.rank === rank);
    if (shown && !shown.layout) await timeline.onUnfoldRank(shown);
    if (timeline.arrangement.folded.delete(`r${rank}`)) timeline.arrange();
  }

  /** Which of all hits it is, in the order of the ranks on the screen. @param {number} rank @param {number} place within the rank */
  placeWords(rank, place) {
    const ranks = this.timeline.ranks.map((each) => each.rank);
    const before = ranks.slice(0, ranks.indexOf(rank)).reduce((sum, each) => sum + (this.counts.get(each) ?? 0), 0);
    const where = ranks.length > 1 ? ` · rank ${rank}` : "";
    return `${count(before + place)} of ${count(this.total)}${where}`;
  }
}
