// The picture on its canvas: draws the boxes that are in sight, knows which one is selected, and goes from box to box by arrow keys.

import { h } from "../ui/dom.js";
import { onThemeChange, colour } from "../shell/theme.js";
import { Labels, FONT } from "../timeline/draw/labels.js";
import { beside, boxAt, byRow } from "./layout.js";
import { fitted, label } from "./names.js";

/** @typedef {import("./layout.js").Box} Box */
/** @typedef {import("./layout.js").Picture} Picture */
/** @typedef {import("./colours.js").Paint} Paint */

export const ROW = 21; // pixels
const LEAST_LABEL = 22; // pixels of a box that has room for letters
const EDGE = 5;
const ARROWS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);

/**
 * @typedef {object} Options
 * @property {(pixels: number) => Picture | null} picture  what is to be drawn now; null while it is on its way
 * @property {() => Paint} paint
 * @property {() => ((name: string) => boolean) | null} find  what is highlighted
 * @property {(box: Box) => string} words  what a box says
 * @property {(box: Box | null) => void} onSelect
 * @property {(box: Box) => void} onEnter  by click or Enter
 * @property {(event: KeyboardEvent) => boolean} onKey  other keys; whether it is one of them
 */

export class FlameGraph {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.canvas = h("canvas", { class: "fg-canvas", "aria-hidden": "true" });
    this.room = h("div", { class: "fg-room" }, this.canvas);
    this.element = h("div", { class: "fg", tabindex: 0, role: "application" }, this.room);
    const pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.pen = pen;
    this.labels = new Labels((text) => {
      pen.font = FONT;
      return pen.measureText(text).width;
    });
    /** @type {Box[][]} */
    this.rows = [];
    /** @type {Box | null} */
    this.at = null;
    this.frame = 0;
    this.width = 0;
    this.paint = options.paint();
    this.listen();
  }

  listen() {
    const { element } = this;
    element.addEventListener("scroll", () => this.soon(), { passive: true });
    element.addEventListener("pointermove", (event) => this.point(event));
    element.addEventListener("pointerleave", () => delete element.dataset.tip);
    element.addEventListener("click", (event) => this.click(event));
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("focus", () => this.soon());
    element.addEventListener("blur", () => this.soon());
    this.stopTheme = onThemeChange(() => this.repaint());
    this.sizes = new ResizeObserver(() => {
      if (!element.isConnected) this.end();
      else if (element.clientWidth !== this.width) this.update();
      else this.soon();
    });
    this.sizes.observe(element);
  }

  end() {
    this.sizes?.disconnect();
    this.stopTheme?.();
  }

  get boxes() {
    return this.rows.flat().filter(Boolean);
  }

  /** Lays out anew; who is selected stays selected where it is still there. */
  update() {
    this.width = this.element.clientWidth;
    const picture = this.width ? this.options.picture(this.width) : null;
    if (!picture) return;
    this.rows = byRow(picture.boxes);
    this.room.style.height = `${picture.rows * ROW}px`;
    const { at } = this;
    const same = at && this.boxes.find((box) => box.node === at.node && !box.more);
    if (at) this.select(same ?? null);
    this.repaint();
  }

  repaint() {
    this.paint = this.options.paint();
    this.soon();
  }

  soon() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const { element, canvas, pen } = this;
    const [width, height] = [element.clientWidth, element.clientHeight];
    if (!width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    const top = element.scrollTop;
    const find = this.options.find();
    const quiet = /** @type {[string, string]} */ ([colour("card"), colour("faint")]);
    const first = Math.max(0, Math.floor(top / ROW));
    for (let row = first; row <= Math.min(this.rows.length - 1, Math.floor((top + height) / ROW)); row += 1)
      for (const box of this.rows[row] ?? []) this.drawBox(box, row * ROW - top, width, find, quiet);
    this.outline(top, width);
    element.dataset.drawn = "yes";
  }

  /** @param {Box} box @param {number} y @param {number} width @param {((name: string) => boolean) | null} find @param {[string, string]} quiet */
  drawBox(box, y, width, find, quiet) {
    const { pen } = this;
    const [x, end] = [box.x0 * width, box.x1 * width];
    const isQuiet = box.more || box.node.kind === "all" || (find !== null && !find(box.node.name));
    const [fill, ink] = isQuiet ? quiet : this.paint.of(box.node);
    const room = end - x;
    pen.globalAlpha = box.isAround && !isQuiet ? 0.55 : 1;
    pen.fillStyle = fill;
    pen.fillRect(x, y, Math.max(0.5, room - (room > 3 ? 1 : 0)), ROW - 1);
    pen.globalAlpha = 1;
    if (room < LEAST_LABEL) return;
    const text = fitted(this.labelOf(box), room - 2 * EDGE, (words) => this.labels.width(words));
    if (!text) return;
    pen.fillStyle = box.isAround && !isQuiet ? colour("ink") : ink;
    pen.fillText(text, Math.max(x, 0) + EDGE, y + ROW / 2);
  }

  /** @param {Box} box */
  labelOf(box) {
    if (box.more) return `${box.more} smaller`;
    return box.node.kind === "thread" ? box.node.name : label(box.node.name);
  }

  /** @param {number} top @param {number} width */
  outline(top, width) {
    const { at, pen } = this;
    if (!at) return;
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 2;
    pen.strokeRect(at.x0 * width + 1, at.row * ROW - top + 1, Math.max(2, (at.x1 - at.x0) * width - 2), ROW - 3);
  }

  /** @param {MouseEvent} event */
  boxUnder(event) {
    const edge = this.element.getBoundingClientRect();
    const y = event.clientY - edge.top - this.element.clientTop + this.element.scrollTop;
    return boxAt(this.rows, Math.floor(y / ROW), (event.clientX - edge.left - this.element.clientLeft) / Math.max(1, this.width));
  }

  /** @param {PointerEvent} event */
  point(event) {
    const box = this.boxUnder(event);
    if (box) this.element.dataset.tip = box.more ? `${box.more} boxes that are too narrow to draw; zoom in to see them.` : this.options.words(box);
    else delete this.element.dataset.tip;
    this.element.style.cursor = box && !box.more ? "pointer" : "";
  }

  /** @param {MouseEvent} event */
  click(event) {
    const box = this.boxUnder(event);
    if (!box || box.more) return;
    this.select(box);
    this.options.onEnter(box);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (ARROWS.has(event.key)) this.move(event.key);
    else if (event.key === "Enter" && this.at) this.options.onEnter(this.at);
    else if (!this.options.onKey(event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} key */
  move(key) {
    const rows = this.rows.map((row) => row?.filter((box) => !box.more) ?? []);
    const first = rows.find((row) => row.length)?.[0] ?? null;
    this.select(this.at ? beside(rows, this.at, key) ?? this.at : first);
  }

  /** @param {Box | null} box */
  select(box) {
    this.at = box;
    if (box) this.reveal(box);
    this.options.onSelect(box);
    this.soon();
  }

  /** @param {Box} box */
  reveal(box) {
    const { element } = this;
    const y = box.row * ROW;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + ROW > element.scrollTop + element.clientHeight) element.scrollTop = y + ROW - element.clientHeight;
  }
}
