// The list of what a search found: name, start, duration and step in the order of time; a page of it at once, with the count of the rest.

import { isLeft } from "../../shell/api.js";
import { fill, h } from "../../ui/dom.js";
import { count, duration } from "../../text/format.js";
import { shortName } from "../../text/names.js";
import { tickText } from "../draw/ruler.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {import("../types").HitsListed} HitsListed */

const PAGE = 200; // hits of one answer

/** The place of the page that has a hit. @param {number} place counted from 0 */
export function pageOf(place) {
  return Math.floor(Math.max(0, place) / PAGE) * PAGE;
}

/** What is left out before and after a page, in words. @param {HitsListed} listed */
export function leftOut(listed) {
  const after = listed.total - listed.first - listed.hits.length;
  return { before: listed.first ? `${count(listed.first)} before` : "", after: after > 0 ? `${count(after)} more` : "" };
}

/** Beside the picture, as long as something is searched for. */
export class HitList {
  /** @param {Timeline} timeline @param {(rank: number, id: number, place: number) => void} onHit */
  constructor(timeline, onHit) {
    this.timeline = timeline;
    this.onHit = onHit;
    this.text = "";
    this.rank = -1;
    this.asked = 0;
    /** @type {HitsListed | null} */
    this.listed = null;
    this.at = -1; // the current hit, counted from 0
    const { hits, buttons } = timeline.elements;
    buttons.list.addEventListener("click", () => this.fold(!hits.hidden));
    hits.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {boolean} isFolded */
  fold(isFolded) {
    this.timeline.elements.buttons.list.setAttribute("aria-expanded", String(!isFolded));
    this.open(this.listed !== null);
  }

  /** @param {boolean} hasHits */
  open(hasHits) {
    const { hits, buttons } = this.timeline.elements;
    buttons.list.disabled = !hasHits;
    const isHidden = !hasHits || buttons.list.getAttribute("aria-expanded") === "false";
    if (hits.hidden === isHidden) return;
    hits.hidden = isHidden;
    this.timeline.resize();
  }

  /** Nothing is searched for, or nothing found. */
  clear() {
    this.asked += 1;
    this.text = "";
    this.listed = null;
    this.at = -1;
    this.open(false);
  }

  /** The hits of a rank, from the page of a place on. @param {string} text @param {number} rank @param {number} place counted from 0; -1 for no hit in particular */
  async show(text, rank, place) {
    this.at = place;
    const first = pageOf(place);
    if (this.listed && this.text === text && this.rank === rank && this.listed.first === first) {
      this.mark();
      return;
    }
    const turn = (this.asked += 1);
    try {
      const listed = await this.timeline.ask.hitList(rank, text, first);
      if (turn !== this.asked) return;
      Object.assign(this, { text, rank, listed });
      this.draw();
      this.open(listed.total > 0);
    } catch (error) {
      if (!isLeft(error) && turn === this.asked) this.timeline.tell(error instanceof Error ? error.message : String(error), true);
    }
  }

  draw() {
    const { timeline, listed, rank } = this;
    if (!listed) return;
    const rows = listed.hits.map((hit, at) => h("li", {}, h("button", {
      type: "button", "data-id": hit.id, "data-place": listed.first + at, onclick: () => this.choose(listed.first + at),
    }, h("b", {}, duration(hit.dur_ns)), h("span", {}, shortName(hit.name)), h("small", {}, this.about(hit)))));
    const { before, after } = leftOut(listed);
    const of = timeline.ranks.length > 1 ? ` in rank ${rank}` : "";
    const page = (/** @type {string} */ words, /** @type {number} */ place) => words && h("button", { type: "button", class: "tl-more", onclick: () => this.show(this.text, rank, place) }, words);
    fill(timeline.elements.hits, h("p", { class: "sub" }, `${count(listed.total)} found${of}, in the order of time.`),
      page(before, listed.first - 1), h("ol", {}, rows), page(after, listed.first + listed.hits.length));
    timeline.elements.hits.scrollTop = 0;
    this.mark();
  }

  /** @param {import("../types").HitListed} hit */
  about(hit) {
    const { timeline, rank } = this;
    return [`at ${tickText(timeline.placeOf(rank, hit.after_ns), 1000)}`, hit.step === null ? "" : `step ${hit.step}`].filter(Boolean).join(" · ");
  }

  /** @param {number} place */
  choose(place) {
    const hit = this.listed?.hits[place - this.listed.first];
    if (!hit) return;
    this.at = place;
    this.mark();
    this.onHit(this.rank, hit.id, place);
  }

  /** The current hit, in view. */
  mark() {
    for (const button of this.timeline.elements.hits.querySelectorAll("button[data-id]")) {
      const isHere = Number(/** @type {HTMLElement} */ (button).dataset.place) === this.at;
      if (!isHere) {
        button.removeAttribute("aria-current");
        continue;
      }
      button.setAttribute("aria-current", "true");
      button.scrollIntoView({ block: "nearest" });
    }
  }

  /** Arrows go from one to the next. @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const all = /** @type {HTMLElement[]} */ ([...this.timeline.elements.hits.querySelectorAll("button")]);
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    all[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}
