// The viewer as a whole: holds what is shown and selected, and paints a frame when anything changed.

import { duration } from "../text/format.js";
import { onThemeChange } from "../shell/theme.js";
import { palette } from "./draw/colours.js";
import { CounterTiles } from "./draw/counters.js";
import { hitAt } from "./act/hits.js";
import { buildLines, foldable, noArrangement, nothingMatches, stuckHeight, stuckLines } from "./lines.js";
import { Minimap, paintRuler } from "./draw/minimap.js";
import { reorder } from "./act/order.js";
import { movedBy, paintOverlay, sourceId } from "./draw/overlay.js";
import { Painter } from "./draw/painter.js";
import { build } from "./skeleton.js";
import { Asker } from "./net/source.js";
import { Tiles } from "./net/tiles.js";
import { Tracks } from "./act/tracks.js";
import { Viewport } from "./viewport.js";

/** @typedef {import("./types").Source} Source */
/** @typedef {import("./lines.js").RankShown} RankShown */

const REST_MS = 120;
const SPAN_EVERY_MS = 150;

/** State and painting; what people do to it comes from input.js, search.js and selection.js. */
export class Timeline {
  /** @param {HTMLElement} root @param {import("../types").Context} context */
  constructor(root, context) {
    this.context = context;
    this.elements = build(root);
    this.ask = new Asker(context.api, context.run, () => this.invalidate());
    this.viewport = new Viewport(0, 1);
    this.zero = 0; // when the shown trace begins, in its own time
    this.scroll = 0;
    /** Called when there is less room than before, with the height before. @type {(before: number) => void} */
    this.onShrink = () => {};
    this.height = 1;
    this.arrangement = noArrangement();
    /** @type {RankShown[]} */
    this.ranks = [];
    /** @type {import("./types").Line[]} */
    this.lines = [];
    this.linesHeight = 0;
    /** @type {import("./draw/overlay.js").Marked} */
    this.marked = { hover: null, chosen: null, links: [], waits: [], meeting: [], range: null, marks: [], bands: [], pointer: null };
    /** @type {Map<string, Uint8Array>} which names are lit, by source */
    this.lit = new Map();
    this.tiles = new Tiles((...wish) => this.ask.tile(...wish), () => this.invalidate(), (error) => this.tell(String(error instanceof Error ? error.message : error), true));
    this.counters = new CounterTiles((...wish) => this.ask.counter(...wish), () => this.invalidate());
    this.painter = new Painter(this.elements.canvas);
    this.minimap = new Minimap(this.elements.minimap);
    this.palette = palette();
    this.painter.use(this.palette);
    this.tracks = new Tracks(this.elements.side, {
      fold: (key) => this.fold(key),
      pin: (key) => this.pin(key),
      move: (key, by) => this.move(key, by),
      drop: (key, before) => this.drop(key, before),
      note: (key) => this.onNote(key),
    });
    /** @type {(() => void)[]} called once a frame, before it is painted */
    this.beforeFrame = [];
    /** @type {((key: string) => void)} */
    this.onNote = () => {};
    this.onChange = () => {};
    /** @type {((text: string) => void)} */
    this.onSearch = () => {};
    /** @type {((rank: RankShown) => void)} */
    this.onUnfoldRank = () => {};
    /** Which names are lit was decided anew by the search. */
    this.onLit = () => {};
    this.arriving = 0; // rows that the server still works out
    /** Another rank was read. */
    this.onRank = () => {};
    this.frames = /** @type {number[]} */ ([]);
    this.firstPaint = 0;
    this.isMoving = false;
    this.restTimer = 0;
    this.seen = "";
    this.toldSpan = 0;
    /** @type {Promise<void>} when slices are on the screen: everything else may wait for that */
    this.painted = new Promise((done) => { this.onPainted = done; });
    this.scheduled = 0;
    this.stopped = false;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.elements.stage);
    this.stopTheme = onThemeChange(() => this.repaint());
    this.elements.bar.addEventListener("scroll", () => this.scrollTo(this.elements.bar.scrollTop));
  }

  /** Ends everything. */
  stop() {
    this.stopped = true;
    this.tiles.stop();
    cancelAnimationFrame(this.scheduled);
    this.observer.disconnect();
    this.stopTheme();
  }

  /** After the colours changed. */
  repaint() {
    this.palette = palette();
    this.painter.use(this.palette);
    this.invalidate();
  }

  /** @param {string} words @param {boolean} [isError] */
  tell(words, isError = false) {
    this.elements.status.textContent = words;
    this.elements.status.dataset.tip = words; // a narrow window cuts it
    this.elements.status.classList.toggle("error", isError);
  }

  resize() {
    const { stage, side, bar } = this.elements;
    const width = Math.max(50, stage.clientWidth - side.offsetWidth - bar.offsetWidth);
    const before = this.height;
    this.height = Math.max(20, stage.clientHeight);
    this.painter.resize(width, this.height);
    this.minimap.resize(width, this.painter.ratio);
    this.viewport.width = width;
    this.scrollTo(this.scroll);
    if (this.height < before) this.onShrink(before);
    this.invalidate();
  }

  /** After ranks, tracks or their arrangement changed. */
  arrange() {
    this.elements.buttons.fold.textContent = this.arrangement.allFolded ? "Unfold all" : "Fold all";
    const { lines, height } = buildLines(this.ranks, this.arrangement);
    const moved = movedBy(this.scene, lines, this.marked.chosen);
    this.lines = lines;
    this.linesHeight = height;
    this.elements.nothing.hidden = !nothingMatches(lines, this.arrangement.filter);
    this.elements.nothing.textContent = `No track matches “${this.arrangement.filter.trim()}”${this.ranks.length > 1 ? " in the unfolded ranks" : ""}.`;
    this.elements.spacer.style.height = `${height + 40}px`;
    this.scrollTo(this.scroll + moved);
    this.onChange();
    this.invalidate();
  }

  /** @param {number} top */
  scrollTo(top) {
    const most = Math.max(0, this.linesHeight + 40 - this.height);
    this.scroll = Math.round(Math.min(Math.max(0, top), most));
    if (Math.abs(this.elements.bar.scrollTop - this.scroll) > 1) this.elements.bar.scrollTop = this.scroll;
    this.invalidate();
  }

  /** Scrolls no more than needed. @param {number} y @param {number} height */
  reveal(y, height) {
    if (y < this.scroll + stuckHeight(stuckLines(this.lines, this.scroll))) this.scrollTo(y - 60);
    else if (y + height > this.scroll + this.height) this.scrollTo(y + height - this.height + 60);
  }

  /** Paints soon, once. */
  invalidate() {
    if (this.scheduled || this.stopped) return;
    this.scheduled = requestAnimationFrame(() => {
      this.scheduled = 0;
      this.frame();
    });
  }

  /** @returns {import("./draw/painter.js").Scene} */
  get scene() {
    return {
      viewport: this.viewport, lines: this.lines, scroll: this.scroll, height: this.height, tiles: this.tiles,
      counters: this.counters, names: (source) => this.ask.names(source), lit: (source) => this.lit.get(sourceId(source.rank, source.layer)) ?? null,
      isMoving: this.isMoving,
    };
  }

  frame() {
    if (this.stopped || !this.ranks.length) return;
    const begun = performance.now();
    for (const each of this.beforeFrame) each();
    this.noteMotion();
    const { scene, palette: colours, painter } = this;
    painter.paint(scene);
    this.tracks.update(this.lines, this.scroll, this.height);
    paintOverlay(painter.ctx, scene, this.marked, colours, (rank, after) => this.placeOf(rank, after));
    this.minimap.paint(scene, colours, painter.ratio, this.lines);
    paintRuler(this.elements.ruler, this.viewport.width, painter.ratio, scene, colours);
    this.tellSpan(begun);
    if (this.minimap.wishes?.length) this.tiles.want([...this.tiles.wishes, ...this.minimap.wishes], this.tiles.guesses);
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 5000) this.frames.splice(0, 1000);
    if (!this.firstPaint && painter.hasSlices) {
      this.firstPaint = performance.now();
      this.onPainted?.();
    }
  }

  /** How much time is in view: in motion only now and then, as every change costs a layout. @param {number} now */
  tellSpan(now) {
    if (this.isMoving && now - this.toldSpan < SPAN_EVERY_MS) return;
    const shown = `${duration(this.viewport.span)} shown`;
    if (this.elements.span.textContent === shown) return;
    this.elements.span.textContent = shown;
    this.minimap.tell(this.viewport, shown);
    this.toldSpan = now;
  }

  /** Frames that show another time than the one before are in motion; after them comes one at rest. */
  noteMotion() {
    const seen = `${this.viewport.start} ${this.viewport.end}`;
    this.isMoving = this.seen !== "" && seen !== this.seen;
    this.seen = seen;
    if (!this.isMoving) return;
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => this.invalidate(), REST_MS);
  }

  /** When it is, in the trace's own time; exact, as a double is not so long after 1970. @param {number} after since the shown trace begins */
  moment(after) {
    return BigInt(Math.round(after)) + BigInt(this.zero);
  }

  /** How long after the begin of the shown trace. @param {bigint} moment of the trace's own time */
  since(moment) {
    return Number(moment - BigInt(this.zero));
  }

  /** @param {number} rank */
  shiftOf(rank) {
    return this.ranks.find((each) => each.rank === rank)?.source?.shift ?? 0;
  }

  /** The same moment in the rank's own time, to the nanosecond. @param {number} rank @param {number} time since the shown trace begins */
  ownTime(rank, time) {
    return BigInt(Math.round(time)) - BigInt(Math.round(this.shiftOf(rank)));
  }

  /** Where something lies that begins so long after its rank does: exactly, as times since 1970 are not. @param {number} rank @param {number} after */
  placeOf(rank, after) {
    return after + ((this.ranks.find((each) => each.rank === rank)?.layout?.start_ns ?? 0) + this.shiftOf(rank));
  }

  /** @param {number} x @param {number} y of the picture */
  hit(x, y) {
    return hitAt(this.scene, x, y, this.painter.ratio);
  }

  /** @param {string} key */
  fold(key) {
    const rank = this.ranks.find((each) => `r${each.rank}` === key);
    if (rank && rank.layout === null) {
      this.onUnfoldRank(rank);
      return;
    }
    if (!this.arrangement.folded.delete(key)) this.arrangement.folded.add(key);
    if (!rank) this.arrangement.allFolded = false;
    this.arrange();
  }

  /** All groups and tracks to one row each, so that ranks come together; or back. Ranks that are read later are folded alike. */
  foldAll() {
    const { arrangement } = this;
    const keys = foldable(this.ranks, arrangement);
    arrangement.allFolded = !(arrangement.allFolded || keys.every((key) => arrangement.folded.has(key)));
    for (const key of keys) if (arrangement.allFolded) arrangement.folded.add(key); else arrangement.folded.delete(key);
    this.arrange();
  }

  /** What has come for a rank is folded where all is. @param {RankShown} rank @param {boolean} onlyCounters */
  foldNew(rank, onlyCounters) {
    if (!this.arrangement.allFolded) return;
    for (const key of foldable([rank], this.arrangement)) if (!onlyCounters || key.includes("/c/")) this.arrangement.folded.add(key);
  }

  /** A slice in a group that is folded can be seen only when it is not. @param {number} rank @param {number | null} track */
  unfoldGroup(rank, track) {
    const groups = this.ranks.find((each) => each.rank === rank)?.layout?.groups ?? [];
    const group = groups.find((each) => each.tracks.some((one) => one.id === track));
    if (group && this.arrangement.folded.delete(`r${rank}/g/${group.id}`)) this.arrange();
  }

  /** @param {string} key */
  pin(key) {
    const { pinned } = this.arrangement;
    const at = pinned.indexOf(key);
    if (at >= 0) pinned.splice(at, 1);
    else pinned.push(key);
    this.arrange();
  }

  /** @param {string} key @param {number} by */
  move(key, by) {
    if (reorder(this.arrangement, this.lines, key, (_, at) => at + by)) this.arrange();
  }

  /** @param {string} key @param {string} before */
  drop(key, before) {
    if (reorder(this.arrangement, this.lines, key, (keys) => keys.indexOf(before))) this.arrange();
  }
}
