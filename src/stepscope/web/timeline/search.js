// Search over the whole trace: how many hits there are and when, the next and the one before, and others dimmed.

import { isLeft } from "../app/api.js";
import { count } from "../app/format.js";

/** @typedef {import("./timeline.js").Timeline} Timeline */
/** @typedef {import("./selection.js").Selection} Selection */

const WAIT_MS = 250;

/** The search box and what it found. */
export class Search {
  /** @param {Timeline} timeline @param {Selection} selection */
  constructor(timeline, selection) {
    this.timeline = timeline;
    this.selection = selection;
    this.text = "";
    this.total = 0;
    this.going = Promise.resolve();
    this.asked = 0;
    this.timer = 0;
    const { search, buttons } = timeline.elements;
    search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.run(search.value), WAIT_MS);
    });
    search.addEventListener("keydown", (event) => this.key(event));
    buttons.next.addEventListener("click", () => this.go(1));
    buttons.previous.addEventListener("click", () => this.go(-1));
    buttons.next.disabled = buttons.previous.disabled = true;
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
      if (this.timeline.elements.search.value !== this.text) await this.run(this.timeline.elements.search.value);
      await this.go(event.shiftKey ? -1 : 1);
    }
  }

  /** @param {string} text */
  async run(text) {
    const { timeline } = this;
    const turn = (this.asked += 1);
    this.text = text;
    this.total = 0;
    if (!text.trim()) {
      this.show("", null, null);
      return;
    }
    timeline.elements.found.textContent = "…";
    try {
      const found = await timeline.ask.search(this.rank, text);
      if (turn !== this.asked) return;
      this.total = found.count;
      this.show(found.count ? `${count(found.count)} found` : "nothing found", found.histogram, found.names);
    } catch (error) {
      if (isLeft(error) || turn !== this.asked) return;
      this.show(error instanceof Error ? error.message : String(error), null, null);
    }
  }

  /** @param {string} words @param {number[] | null} histogram @param {number[] | null} names */
  show(words, histogram, names) {
    const { timeline } = this;
    const { found, buttons } = timeline.elements;
    found.textContent = words;
    buttons.next.disabled = buttons.previous.disabled = this.total === 0;
    timeline.minimap.hits = histogram;
    timeline.lit.clear();
    if (names?.length) {
      const lit = new Uint8Array(Math.max(...names) + 1);
      for (const name of names) lit[name] = 1;
      timeline.lit.set(`${this.rank}`, lit);
    }
    timeline.onChange();
    timeline.invalidate();
  }

  /** The next hit, or the one before, from the selection or else from where the view begins. @param {number} by */
  go(by) {
    // One after the other: each begins where the one before has ended.
    this.going = this.going.then(() => this.step(by));
    return this.going;
  }

  /** @param {number} by */
  async step(by) {
    const { timeline, selection } = this;
    if (!this.total) return;
    const { rank } = this;
    const shift = timeline.shiftOf(rank);
    const chosen = selection.chosen?.layer === "events" ? selection.chosen : null;
    const at = (chosen ? chosen.start : by > 0 ? timeline.viewport.start : timeline.viewport.end) - shift;
    try {
      const hit = await timeline.ask.found(rank, this.text, at, chosen?.id ?? null, by);
      await selection.go(rank, "events", hit.id);
      timeline.elements.found.textContent = `${count(hit.place)} of ${count(this.total)}`;
    } catch (error) {
      if (!isLeft(error)) timeline.tell(error instanceof Error ? error.message : String(error), true);
    }
  }
}
