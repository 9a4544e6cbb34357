// What is selected: one slice, or a range of time on some tracks; and the drawer that tells about it.

import { isLeft } from "../../shell/api.js";
import { showEvent, showFailure, showSpan } from "../details.js";
import { heightOf, tracksBetween } from "./hits.js";
import { sourceId } from "../draw/overlay.js";
import { showRange } from "./ranges.js";
import { showRelated } from "./related.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {import("../types").Chosen} Chosen */

const PATH = "path"; // the layer of the critical path

/** Selects, and shows what is selected. */
export class Selection {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    timeline.onShrink = (before) => this.keepInView(before);
    /** @type {{ rank: number, track: number }[]} */
    this.tracks = [];
    this.asked = 0;
    this.going = Promise.resolve();
    this.isHidden = false;
    /** @type {import("../types").EventShown | null} */
    this.event = null;
    /** @type {{ id: number, name: string } | null} the slice as the server described it, of whatever layer */
    this.shown = null;
    this.related = Promise.resolve(); // when waits and other ranks are known
  }

  /** What belonged to the event before. */
  forget() {
    this.timeline.marked.waits = [];
    this.timeline.marked.meeting = [];
  }

  get chosen() {
    return this.timeline.marked.chosen;
  }

  /** @param {boolean} isOpen */
  open(isOpen) {
    const { drawer, grip } = this.timeline.elements;
    drawer.hidden = grip.hidden = !isOpen;
  }

  toggleDrawer() {
    this.isHidden = !this.isHidden;
    this.open(!this.isHidden && (this.chosen !== null || this.timeline.marked.range !== null));
  }

  clear() {
    const { marked } = this.timeline;
    this.asked += 1;
    marked.chosen = marked.range = null;
    marked.links = [];
    this.forget();
    this.tracks = [];
    this.event = null;
    this.open(false);
    this.timeline.onChange();
    this.timeline.invalidate();
  }

  /** A slice under the pointer, or nothing. @param {import("../types").Hit | null} hit */
  choose(hit) {
    if (!hit) {
      this.clear();
      return;
    }
    this.select(hit.source.rank, hit.source.layer, hit.id, { start: hit.start, dur: hit.dur, row: hit.row, track: hit.line.track });
  }

  /**
   * One slice by its number. What is known of its place shows at once, the rest when it arrives.
   * @param {number} rank @param {string} layer @param {number} id
   * @param {{ start: number, dur: number, row: number, track: number | null } | null} known
   */
  async select(rank, layer, id, known = null) {
    const { timeline } = this;
    const turn = (this.asked += 1);
    timeline.marked.range = null;
    if (known) {
      timeline.marked.links = [];
      this.forget();
      timeline.marked.chosen = { rank, layer, id, ...known };
    }
    timeline.invalidate();
    try {
      const event = await timeline.ask.event(rank, layer, id);
      if (turn !== this.asked) return null;
      this.arrived(rank, layer, event);
      return event;
    } catch (error) {
      if (isLeft(error) || turn !== this.asked) return null;
      timeline.marked.chosen = null;
      timeline.marked.links = [];
      this.open(!this.isHidden);
      showFailure(timeline.elements.drawer, error, this);
      return null;
    }
  }

  /** @param {number} rank @param {string} layer @param {any} event */
  arrived(rank, layer, event) {
    const { timeline } = this;
    timeline.marked.chosen = { rank, layer, id: event.id, start: timeline.placeOf(rank, event.after_ns), dur: event.dur_ns, row: event.row, track: event.track ?? null };
    timeline.marked.links = event.links ?? [];
    this.forget();
    this.shown = event;
    this.event = layer === "events" ? event : null;
    this.open(!this.isHidden);
    const turn = this.asked;
    if (layer === "events") this.related = showRelated(this, event, rank, showEvent(timeline.elements.drawer, event, rank, this), () => turn === this.asked);
    else showSpan(timeline.elements.drawer, event, rank, this);
    timeline.onChange();
    timeline.invalidate();
  }

  /** Selects a slice and brings it into view. @param {number} rank @param {string} layer @param {number} id */
  async go(rank, layer, id) {
    const event = await this.select(rank, layer, id);
    if (event) this.show();
  }

  /** Selects an event, and scrolls to its row; the time in view stays. @param {number} rank @param {number} id */
  async goAt(rank, id) {
    const event = await this.select(rank, "events", id);
    if (event) this.scrollToRow();
  }

  /** The drawer opens over what was selected: what could be seen before still can. @param {number} before the height before */
  keepInView(before) {
    const { timeline, chosen } = this;
    const found = chosen && heightOf(timeline.lines, sourceId(chosen.rank, chosen.layer), chosen.row, chosen);
    if (found && found.y >= timeline.scroll && found.y < timeline.scroll + before) timeline.reveal(found.y, 18);
  }

  /** Scrolls and pans to the selected slice. */
  show() {
    const { timeline, chosen } = this;
    if (!chosen) return;
    timeline.viewport.reveal(chosen.start, chosen.start + chosen.dur);
    this.scrollToRow();
  }

  /** Scrolls to the row of the selected slice, unfolded where it is folded. */
  scrollToRow() {
    const { timeline, chosen } = this;
    if (!chosen) return;
    timeline.unfoldGroup(chosen.rank, chosen.track);
    const key = chosen.track === null ? "" : `r${chosen.rank}/t${chosen.track}`;
    const place = heightOf(timeline.lines, sourceId(chosen.rank, chosen.layer), chosen.row, chosen);
    if (place && !place.isExact && timeline.arrangement.folded.delete(key)) timeline.arrange();
    const found = heightOf(timeline.lines, sourceId(chosen.rank, chosen.layer), chosen.row, chosen);
    if (found) timeline.reveal(found.y, 18);
    timeline.onChange();
    timeline.invalidate();
  }

  /** Centres, and the second time fills the view. */
  focus() {
    const { timeline, chosen } = this;
    const range = timeline.marked.range;
    const span = chosen ? { start: chosen.start, end: chosen.start + chosen.dur } : range;
    if (!span) return;
    timeline.viewport.focus(span.start, span.end);
    timeline.onChange();
    timeline.invalidate();
  }

  /** Fills the view with the selected slice. */
  fill() {
    const { timeline, chosen } = this;
    if (!chosen) return;
    const edge = Math.max(chosen.dur, 20) * 0.05;
    timeline.viewport.show(chosen.start - edge, chosen.start + chosen.dur + edge);
    timeline.onChange();
    timeline.invalidate();
  }

  /** The slice before or after in the same row. @param {number} by */
  step(by) {
    return this.after(() => this.toNeighbour(by));
  }

  /** Along the first link of that direction. @param {"to" | "from"} direction */
  follow(direction) {
    return this.after(() => this.alongLink(direction));
  }

  /** Keys that are pressed faster than the server answers: each goes on from where the one before has led. @param {() => Promise<void>} move */
  after(move) {
    this.going = this.going.then(move, move);
    return this.going;
  }

  /** @param {number} by */
  async toNeighbour(by) {
    const { chosen, timeline } = this;
    if (!chosen) return;
    try {
      const next = await timeline.ask.neighbour(chosen.rank, chosen.layer, chosen.id, by);
      if (next.id !== null) await this.go(chosen.rank, chosen.layer, next.id);
    } catch (error) {
      if (!isLeft(error)) timeline.tell("There is no other slice.", true);
    }
  }

  /** On to the next slice of the critical path; from anywhere else, to the one at that moment. @param {number} by */
  alongPath(by) {
    return this.after(() => (this.chosen?.layer === PATH ? this.toNeighbour(by) : this.toPath()));
  }

  /** The slice of the critical path under the selection, or where the view begins. */
  async toPath() {
    const { chosen, timeline } = this;
    const rank = chosen?.rank ?? timeline.ranks[0].rank;
    try {
      const at = timeline.ownTime(rank, chosen?.start ?? timeline.viewport.start);
      const found = await timeline.ask.onPath(rank, at);
      if (found.id === null) timeline.tell("The critical path ends before this.", true);
      else await this.go(rank, PATH, found.id);
    } catch (error) {
      if (!isLeft(error)) timeline.tell("There is no critical path.", true);
    }
  }

  /** @param {"to" | "from"} direction */
  async alongLink(direction) {
    const link = this.timeline.marked.links.find((each) => each.direction === direction);
    if (link && this.chosen) await this.go(this.chosen.rank, "events", link.id);
  }

  /** To what decided when the event began, or on to what it held up. @param {"to" | "from"} direction */
  followWait(direction) {
    return this.after(async () => {
      await this.related;
      const waits = this.timeline.marked.waits.filter((each) => each.direction === direction);
      const next = waits.find((each) => each.decides) ?? waits[0];
      if (next && this.chosen) await this.go(this.chosen.rank, "events", next.id);
      else this.timeline.tell(direction === "from" ? "Nothing that it waited for is known." : "Nothing that waited for it is known.");
    });
  }

  /** @param {boolean} kept */
  mark(kept) {
    const { marked } = this.timeline;
    const { chosen } = this;
    const span = chosen ? { start: chosen.start, end: chosen.start + chosen.dur } : marked.range;
    marked.marks = marked.marks.filter((mark) => mark.kept);
    if (span) marked.marks.push({ start: span.start, end: span.end, kept });
    this.timeline.onChange();
    this.timeline.invalidate();
  }

  /** From the selected slice to the range it covers, on its own track. */
  toRange() {
    const { chosen } = this;
    if (!chosen) return;
    const own = chosen.track === null ? this.allTracks() : [{ rank: chosen.rank, track: chosen.track }];
    this.chooseRange(chosen.start, chosen.start + Math.max(1, chosen.dur), own);
  }

  allTracks() {
    return tracksBetween(this.timeline.lines, -1, Infinity);
  }

  /** What is in view, on all tracks. */
  selectAll() {
    const { viewport } = this.timeline;
    this.chooseRange(viewport.start, viewport.end, this.allTracks());
  }

  /** @param {number} start @param {number} end @param {{ rank: number, track: number }[]} tracks */
  async chooseRange(start, end, tracks) {
    const { timeline } = this;
    const turn = (this.asked += 1);
    timeline.marked.chosen = null;
    timeline.marked.links = [];
    this.forget();
    timeline.marked.range = { start, end };
    this.event = null;
    this.tracks = tracks;
    this.open(!this.isHidden);
    timeline.onChange();
    timeline.invalidate();
    try {
      await showRange(timeline.elements.drawer, this, start, end, tracks, () => turn === this.asked);
    } catch (error) {
      if (!isLeft(error) && turn === this.asked) showFailure(timeline.elements.drawer, error, this);
    }
  }
}
