// The whole trace in a strip: a few of its rows, where hits of the search lie, and a brush for what is shown.

import { paintRow, Wide } from "./bitmap.js";
import { blocksFor } from "../net/blocks.js";
import { BLOCK_ROWS } from "../net/decode.js";
import { FONT } from "./labels.js";
import { MINIMAP_HEIGHT, RULER_HEIGHT } from "../skeleton.js";
import { ticks } from "./ruler.js";
import { copyAsIs } from "./sheet.js";
import { Viewport } from "../viewport.js";

/** @typedef {import("../types").Line} Line */
/** @typedef {import("./painter.js").Scene} Scene */

const MOST_ROWS = 7;

/** The rows worth a place in the strip: the first of each track, in order. @param {Line[]} lines */
export function rowsOf(lines) {
  return lines.filter((line) => line.kind === "track" && line.source !== null && !line.pinned).slice(0, MOST_ROWS);
}

/** Paints the strip; its rows are kept as a picture until they change. */
export class Minimap {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.sheet = document.createElement("canvas");
    this.signature = "";
    this.wide = new Wide();
    /** @type {number[] | null} */
    this.hits = null;
  }

  /** @param {number} width @param {number} ratio */
  resize(width, ratio) {
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.round(MINIMAP_HEIGHT * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${MINIMAP_HEIGHT}px`;
    copyAsIs(this.canvas, ratio);
    this.signature = "";
  }

  /** For those who do not see the brush. @param {Viewport} viewport @param {string} words how much time is in view */
  tell(viewport, words) {
    const { low, high, start } = viewport;
    this.canvas.setAttribute("aria-valuenow", String(Math.round((100 * (start - low)) / Math.max(1, high - low))));
    this.canvas.setAttribute("aria-valuetext", words);
  }

  /** @param {Scene} scene @param {import("./colours.js").Palette} palette @param {number} ratio @param {Line[]} lines all of them */
  paint(scene, palette, ratio, lines) {
    const { ctx, canvas } = this;
    const width = canvas.width / ratio;
    const whole = new Viewport(scene.viewport.low, scene.viewport.high);
    whole.width = canvas.width;
    this.paintRows(scene, palette, whole, rowsOf(lines));
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = palette.paper;
    ctx.fillRect(0, 0, width, MINIMAP_HEIGHT);
    ctx.imageSmoothingEnabled = false;
    if (this.sheet.height > 0) ctx.drawImage(this.sheet, 0, 2, width, MINIMAP_HEIGHT - 4);
    whole.width = width;
    this.paintHits(palette, width);
    this.paintBrush(palette, whole.x(scene.viewport.start), whole.x(scene.viewport.end), width);
  }

  /** @param {Scene} scene @param {import("./colours.js").Palette} palette @param {Viewport} whole @param {Line[]} rows */
  paintRows(scene, palette, whole, rows) {
    const level = whole.level(1) + 1;
    /** @type {import("../net/tiles.js").Wish[]} */
    const wishes = [];
    const pieces = rows.map((line) => blocksFor(scene.tiles, /** @type {import("../types").Source} */ (line.source), Math.floor(line.row / BLOCK_ROWS), whole.low, whole.high, level, wishes));
    const signature = `${this.canvas.width} ${palette.paper} ${rows.map((line, at) => `${line.key}:${pieces[at].map((piece) => piece.block.unit).join("+")}`).join(",")}`;
    this.wishes = wishes;
    if (signature === this.signature) return;
    this.signature = signature;
    this.sheet.width = this.canvas.width;
    this.sheet.height = Math.max(1, rows.length);
    const sheet = /** @type {CanvasRenderingContext2D} */ (this.sheet.getContext("2d"));
    const image = sheet.createImageData(this.sheet.width, this.sheet.height);
    const pixels = new Uint32Array(image.data.buffer);
    const scale = (whole.high - whole.low) / this.sheet.width;
    rows.forEach((line, at) => {
      for (const piece of pieces[at]) {
        const items = piece.block.rows[line.row % BLOCK_ROWS];
        const from = Math.max(0, Math.round((piece.start - whole.low) / scale));
        const to = Math.min(this.sheet.width, Math.round((piece.end - whole.low) / scale));
        const window = { start: whole.low, scale, from, to, width: this.sheet.width, labelFrom: Infinity };
        if (items) paintRow(pixels, at * this.sheet.width, items, piece.block, window, palette.pixels, palette.pixels, null, this.wide, 0, 0);
      }
    });
    sheet.putImageData(image, 0, 0);
  }

  /** Where the search found something. @param {import("./colours.js").Palette} palette @param {number} width */
  paintHits(palette, width) {
    const { ctx, hits } = this;
    if (!hits?.length) return;
    ctx.fillStyle = palette.error;
    const step = width / hits.length;
    hits.forEach((number, at) => {
      if (number) ctx.fillRect(at * step, 0, Math.max(1, step), 4);
    });
  }

  /** @param {import("./colours.js").Palette} palette @param {number} left @param {number} right @param {number} width */
  paintBrush(palette, left, right, width) {
    const { ctx } = this;
    const low = Math.max(0, left);
    const high = Math.min(width, Math.max(right, low + 2));
    ctx.globalAlpha = 0.72;
    ctx.fillStyle = palette.paper;
    ctx.fillRect(0, 0, low, MINIMAP_HEIGHT);
    ctx.fillRect(high, 0, width - high, MINIMAP_HEIGHT);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = palette.accent;
    ctx.lineWidth = 1;
    ctx.strokeRect(low + 0.5, 0.5, Math.max(1, high - low - 1), MINIMAP_HEIGHT - 1);
  }
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} ratio @param {Scene} scene @param {import("./colours.js").Palette} palette */
export function paintRuler(canvas, width, ratio, scene, palette) {
  const pixels = Math.max(1, Math.round(width * ratio));
  if (canvas.width !== pixels) {
    canvas.width = pixels;
    canvas.height = Math.round(RULER_HEIGHT * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${RULER_HEIGHT}px`;
    copyAsIs(canvas, ratio);
  }
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = palette.paper;
  ctx.fillRect(0, 0, width, RULER_HEIGHT);
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  for (const mark of ticks(scene.viewport.start, scene.viewport.end, width).marks) {
    const x = Math.round(scene.viewport.x(mark.time));
    ctx.fillStyle = palette.rule;
    ctx.fillRect(x, 0, 1, RULER_HEIGHT);
    ctx.fillStyle = palette.faint;
    ctx.fillText(mark.text, x + 4, RULER_HEIGHT / 2);
  }
}
