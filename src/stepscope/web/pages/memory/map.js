// The segments of the allocator as a map: one after another by address, wrapped like text, each with its blocks in their places.

import { colour, onThemeChange } from "../../shell/theme.js";
import { h } from "../../ui/dom.js";

/**
 * @typedef {{ segment: string, address: string, offset: number, bytes: number, kind: string, requested: number | null, stack: number | null, time_ns: number | null, count: number, line: string | null }} Piece
 * @typedef {{ segment: string, bytes: number, segment_kind: string, stream: number | null }} Segment
 * @typedef {{ x: number, y: number, wide: number, piece: Piece | null, begins: boolean, ends: boolean }} Rect
 */

const ROW = 18; // pixels of a row, with the space below it
const HIGH = 14;
const BETWEEN = 3; // pixels between segments
const ROWS = 24;
const LEAST = 2; // pixels of a segment
const FOUND = 3; // pixels beside a narrow block that still count as a hit

/**
 * Where pieces are on rows of this many pixels. @param {Segment[]} segments @param {Map<string, Piece[]>} pieces by segment @param {number} width
 * @returns {{ rects: Rect[], rows: number }}
 */
export function layOutMap(segments, pieces, width) {
  const total = segments.reduce((sum, each) => sum + each.bytes, 0) || 1;
  const room = Math.max(1, ROWS * width - segments.length * (BETWEEN + LEAST));
  const scale = Math.max(room, width) / total;
  /** @type {Rect[]} */
  const rects = [];
  let at = 0; // pixels from the beginning, as if all rows were one
  for (const segment of segments) {
    const wide = Math.max(LEAST, segment.bytes * scale);
    for (const piece of pieces.get(segment.segment) ?? []) {
      const low = at + (piece.offset / segment.bytes) * wide;
      const high = at + Math.min(1, (piece.offset + piece.bytes) / segment.bytes) * wide;
      wrap(rects, low, high, width, piece);
    }
    at += wide + BETWEEN;
  }
  return { rects, rows: Math.max(1, Math.ceil(at / width)) };
}

/** @param {Rect[]} rects @param {number} low @param {number} high @param {number} width @param {Piece} piece */
function wrap(rects, low, high, width, piece) {
  let from = low;
  while (from < high) {
    const row = Math.floor(from / width);
    const to = Math.min(high, (row + 1) * width);
    rects.push({ x: from - row * width, y: row * ROW, wide: to - from, piece, begins: from === low, ends: to === high });
    if (to <= from) break;
    from = to;
  }
}

/** The piece at a point, or the nearest within reach. @param {Rect[]} rects @param {number} x @param {number} y */
export function pieceAt(rects, x, y) {
  /** @type {Rect | null} */
  let best = null;
  let least = FOUND;
  for (const rect of rects) {
    if (y < rect.y || y >= rect.y + ROW) continue;
    const away = x < rect.x ? rect.x - x : x > rect.x + rect.wide ? x - rect.x - rect.wide : 0;
    if (away < least || (away === 0 && best === null)) [best, least] = [rect, away];
    if (away === 0) break;
  }
  return best?.piece ?? null;
}

/** The piece that a key leads to from this one. @param {Piece[]} pieces in their order @param {Piece | null} at @param {string} key */
export function pieceBeside(pieces, at, key) {
  if (!pieces.length) return null;
  const place = at ? pieces.indexOf(at) : -1;
  if (key === "End") return pieces[pieces.length - 1];
  if (key === "Home" || place < 0) return pieces[0];
  if (key === "ArrowRight") return pieces[Math.min(pieces.length - 1, place + 1)];
  if (key === "ArrowLeft") return pieces[Math.max(0, place - 1)];
  const step = key === "ArrowDown" ? 1 : -1; // the next segment
  let next = place;
  while (pieces[next] && pieces[next].segment === pieces[place].segment) next += step;
  return pieces[next] ?? at;
}

const KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);

export class SegmentMap {
  /**
   * @param {{ segments: Segment[], pieces: Piece[], tint: (kind: string) => string, words: (piece: Piece) => string, onSelect: (piece: Piece) => void }} options
   */
  constructor(options) {
    this.options = options;
    /** @type {Map<string, Piece[]>} */
    this.bySegment = new Map();
    for (const piece of options.pieces) this.bySegment.set(piece.segment, [...(this.bySegment.get(piece.segment) ?? []), piece]);
    /** @type {Rect[]} */
    this.rects = [];
    /** @type {Piece | null} */
    this.at = null;
    this.width = 0;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.live = h("p", { class: "visually-hidden", "aria-live": "polite" });
    this.element = h(
      "div",
      { class: "segments", tabindex: 0, role: "application", "aria-label": `${options.segments.length} segments with their blocks, by address. Arrow keys go from block to block, up and down to the next segment, Enter selects.` },
      this.canvas,
      this.live,
    );
    this.listen();
  }

  listen() {
    const { element } = this;
    element.addEventListener("pointermove", (event) => this.point(event));
    element.addEventListener("pointerleave", () => delete element.dataset.tip);
    element.addEventListener("click", (event) => {
      const found = this.under(event);
      if (found) this.select(found);
    });
    element.addEventListener("keydown", (event) => this.key(event));
    this.stopTheme = onThemeChange(() => this.draw());
    this.sizes = new ResizeObserver(() => {
      if (element.isConnected) this.update();
      else this.end();
    });
    this.sizes.observe(element);
  }

  end() {
    this.sizes?.disconnect();
    this.stopTheme?.();
  }

  update() {
    const width = this.element.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    const { rects, rows } = layOutMap(this.options.segments, this.bySegment, width);
    this.rects = rects;
    this.canvas.style.height = `${rows * ROW}px`;
    this.canvas.style.width = `${width}px`;
    this.canvas.width = Math.round(width * devicePixelRatio);
    this.canvas.height = Math.round(rows * ROW * devicePixelRatio);
    this.draw();
    this.element.dataset.drawn = "yes";
  }

  draw() {
    const pen = this.canvas.getContext("2d");
    if (!pen || !this.width) return;
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, this.width, this.canvas.height);
    for (const rect of this.rects) this.paint(pen, rect);
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 2;
    for (const rect of this.rects) if (rect.piece === this.at) pen.strokeRect(rect.x - 1, rect.y + 1, Math.max(rect.wide, 2) + 2, HIGH);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Rect} rect */
  paint(pen, rect) {
    if (!rect.piece) return;
    const wide = Math.max(rect.wide, 0.6);
    pen.fillStyle = this.options.tint(rect.piece.kind);
    pen.fillRect(rect.x, rect.y + 2, wide, HIGH - 2);
    if (rect.piece.kind !== "free" && rect.begins && wide > 3) {
      pen.fillStyle = colour("paper");
      pen.fillRect(rect.x, rect.y + 2, 0.7, HIGH - 2);
    }
  }

  /** @param {MouseEvent} event */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    return pieceAt(this.rects, event.clientX - box.left, event.clientY - box.top);
  }

  /** @param {PointerEvent} event */
  point(event) {
    const found = this.under(event);
    if (found) this.element.dataset.tip = this.options.words(found);
    else delete this.element.dataset.tip;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (KEYS.has(event.key)) {
      this.at = pieceBeside(this.options.pieces, this.at, event.key);
      this.live.textContent = this.at ? this.options.words(this.at) : "";
      this.element.dataset.block = this.at?.address ?? "";
      this.draw();
    } else if (event.key === "Enter" && this.at) this.select(this.at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The rectangle of a block, for tests that point at it. @param {string} address */
  rectOf(address) {
    return this.rects.find((rect) => rect.piece?.address === address) ?? null;
  }

  /** @param {Piece} piece */
  select(piece) {
    this.at = piece;
    this.element.dataset.block = piece.address;
    this.live.textContent = this.options.words(piece);
    this.draw();
    this.options.onSelect(piece);
  }
}
