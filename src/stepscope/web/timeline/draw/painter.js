// Paints the lines that are in view: rows of slices through a bitmap, then names and counters on top.

import { blocksFor, likelyNext } from "../net/blocks.js";
import { blankLine, blankRows, uncovered } from "./background.js";
import { paintRow, Wide } from "./bitmap.js";
import { packed } from "./colours.js";
import { counterCurve, paintGreatest } from "./counters.js";
import { paintCurve } from "./curve.js";
import { BLOCK_ROWS } from "../net/decode.js";
import { FONT, Labels } from "./labels.js";
import { GROUP_HEIGHT, ROW, stuckLines } from "../lines.js";
import { ticks } from "./ruler.js";
import { copyAsIs, Sheet } from "./sheet.js";

/** @typedef {import("../types").Line} Line */
/** @typedef {import("../types").Source} Source */
/** @typedef {import("../net/tiles.js").Wish} Wish */
/**
 * @typedef {{ viewport: import("../viewport.js").Viewport, lines: Line[], scroll: number, height: number,
 *   tiles: import("../net/tiles.js").Tiles, counters: import("./counters.js").CounterTiles,
 *   names: (source: Source) => import("../net/names.js").Names, lit: (source: Source) => Uint8Array | null, isMoving: boolean }} Scene
 */

const CURVE_TOP = 3; // pixels above a curve, and all that its line has beside it
const CURVE_ROOM = 8;
const AREA = 0x59; // of 255: how much of the accent the area below a curve takes
const LABEL_FROM = 26; // pixels
const LABELS_IN_MOTION = 80; // the widest: text is what costs most, and nobody reads it in passing

/** Paints on one canvas. */
export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.rows = new Sheet(true); // the first line is the picture without slices, the others are rows
    this.curves = new Sheet(false);
    this.wide = new Wide();
    this.ratio = 1;
    this.rowsPainted = 0;
    this.hasSlices = false;
    const measuring = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    measuring.font = FONT;
    this.labels = new Labels((text) => measuring.measureText(text).width);
    /** @type {import("./colours.js").Palette | null} */
    this.palette = null;
    this.dimmed = new Uint32Array(0);
    this.edge = 0;
    this.area = 0;
    this.paper = 0;
    this.card = 0;
    this.rule = 0;
  }

  /** @param {import("./colours.js").Palette} palette */
  use(palette) {
    this.palette = palette;
    this.edge = packed(palette.accent);
    [this.paper, this.card, this.rule] = [palette.paper, palette.card, palette.rule].map(packed);
    this.area = ((this.edge & 0xffffff) | (AREA << 24)) >>> 0;
    const back = Number.parseInt(palette.paper.slice(1), 16);
    this.dimmed = palette.pixels.map((pixel) => {
      const mix = (/** @type {number} */ shift, /** @type {number} */ paper) => Math.round(((pixel >>> shift) & 255) * 0.22 + paper * 0.78);
      return ((255 << 24) | (mix(16, back & 255) << 16) | (mix(8, (back >> 8) & 255) << 8) | mix(0, (back >> 16) & 255)) >>> 0;
    });
  }

  /** @param {number} width @param {number} height css pixels */
  resize(width, height) {
    this.ratio = Math.min(2, Math.max(1, window.devicePixelRatio || 1));
    this.canvas.width = Math.max(1, Math.round(width * this.ratio));
    this.canvas.height = Math.max(1, Math.round(height * this.ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    copyAsIs(this.canvas, this.ratio);
  }

  /** Paints the scene; what it lacks is asked for. @param {Scene} scene */
  paint(scene) {
    const { ctx, palette, ratio } = this;
    if (!palette) return;
    const width = this.canvas.width / ratio;
    const visible = scene.lines.filter((line) => line.y + line.height > scene.scroll && line.y < scene.scroll + scene.height);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.imageSmoothingEnabled = false;
    const { wishes, likely, sources, runs, curves } = this.paintSheets(scene, visible);
    for (const { top, bottom } of uncovered(runs, this.canvas.height / ratio)) ctx.drawImage(this.rows.canvas, 0, 0, this.canvas.width, 1, 0, top, width, bottom - top);
    this.paintBands(scene, visible, width);
    this.stretch(runs, curves);
    this.paintNames(scene, sources);
    for (const { line, top, most } of curves) {
      if (most > 0 && !line.folded) paintGreatest(ctx, line, top, most, palette);
    }
    for (const { line, y } of stuckLines(scene.lines, scene.scroll)) this.paintHeading(line, y, width);
    scene.tiles.want(wishes, likely);
  }

  /** Headings, and rules between tracks. @param {Scene} scene @param {Line[]} visible @param {number} width */
  paintBands(scene, visible, width) {
    const { ctx } = this;
    const palette = /** @type {import("./colours.js").Palette} */ (this.palette);
    for (const line of visible) {
      const y = line.y - scene.scroll;
      if (line.kind === "group" || line.kind === "rank") {
        this.paintHeading(line, y, width);
        continue;
      }
      ctx.fillStyle = palette.rule;
      ctx.fillRect(0, y + line.height - 1, width, 1);
      if (line.pinned) {
        ctx.fillStyle = palette.accent;
        ctx.fillRect(0, y, 2, line.height - 1);
      }
    }
  }

  /** The strip of a rank or a group. @param {Line} line @param {number} y @param {number} width */
  paintHeading(line, y, width) {
    const { ctx } = this;
    const palette = /** @type {import("./colours.js").Palette} */ (this.palette);
    ctx.fillStyle = palette.card;
    ctx.fillRect(0, y, width, line.height);
    if (line.kind === "rank" && line.detail) this.paintRemark(line.detail, y + line.height / 2, width);
    ctx.fillStyle = palette.rule;
    ctx.fillRect(0, y + line.height - 1, width, 1);
  }

  /** What a rank's heading says, where its slices would be. @param {string} words @param {number} y @param {number} width */
  paintRemark(words, y, width) {
    const { ctx } = this;
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    ctx.fillStyle = /** @type {import("./colours.js").Palette} */ (this.palette).faint;
    ctx.fillText(this.labels.fit(words, width - 12), 6, y);
  }

  /** The picture without slices, as the first line of the sheet of rows. @param {Scene} scene */
  paintBlank(scene) {
    const { start, end, width } = scene.viewport;
    const marks = ticks(start, end, width).marks.map((mark) => Math.round(Math.round(scene.viewport.x(mark.time)) * this.ratio));
    blankLine(this.rows.pixels, this.canvas.width, marks, Math.round(this.ratio), this.paper, this.rule);
  }

  /** Slices and curves, by way of the sheets. @param {Scene} scene @param {Line[]} visible */
  paintSheets(scene, visible) {
    const { width } = this.canvas;
    const runs = visible.filter((line) => line.source && line.kind !== "counter" && line.rows > 0).map((line) => runOf(line, scene));
    this.rowsPainted = runs.reduce((sum, run) => sum + run.count, 0);
    this.rows.room(width, 1 + this.rowsPainted);
    this.paintBlank(scene);
    this.wide.count = 0;
    /** @type {Wish[]} */
    const wishes = [];
    /** @type {Map<Source, Set<number>>} */
    const shown = new Map();
    /** @type {Source[]} */
    const sources = [];
    let at = 1;
    for (const run of runs) {
      const bar = run.isPinned ? { columns: Math.round(2 * this.ratio), colour: this.edge } : null;
      blankRows(this.rows.pixels, width, at, run.count, run.isStrip ? this.card : null, bar);
      if (sources[sources.length - 1] !== run.source) sources.push(run.source);
      this.paintRun(scene, run, at, wishes, shown, sources.length - 1);
      at += run.count;
    }
    this.rows.put(at);
    const curves = this.paintCurves(scene, visible, wishes.length === 0);
    const { start, end } = scene.viewport;
    const level = scene.viewport.level(this.ratio);
    // Nothing is guessed in motion: the next frame would guess again.
    const likely = scene.isMoving ? [] : [...shown].flatMap(([source, blocks]) => likelyNext(source, [...blocks], start, end, level));
    return { wishes, likely, sources, runs, curves };
  }

  /** @param {Scene} scene @param {Line[]} visible @param {boolean} mayAsk */
  paintCurves(scene, visible, mayAsk) {
    const { width } = this.canvas;
    const counters = visible.filter((line) => line.kind === "counter" && line.source);
    const heights = counters.map((line) => Math.max(1, Math.round((line.height - CURVE_ROOM) * this.ratio)));
    const lines = heights.reduce((sum, height) => sum + height, 0);
    this.curves.room(width, lines);
    this.curves.pixels.fill(0, 0, width * lines);
    let at = 0;
    const found = counters.map((line, number) => {
      const height = heights[number];
      const { curve, most } = counterCurve(line, scene, width, mayAsk);
      paintCurve(this.curves.pixels, at * width, width, height, curve, most, this.area, this.edge);
      at += height;
      return { line, top: line.y - scene.scroll + CURVE_TOP, from: at - height, height, most: curve.count ? most : 0 };
    });
    this.curves.put(lines);
    scene.counters.ask(scene.isMoving);
    return found;
  }

  /**
   * @param {Scene} scene @param {ReturnType<typeof runOf>} run @param {number} at @param {Wish[]} wishes
   * @param {Map<Source, Set<number>>} shown @param {number} source
   */
  paintRun(scene, run, at, wishes, shown, source) {
    const palette = /** @type {import("./colours.js").Palette} */ (this.palette);
    const { viewport } = scene;
    const width = this.canvas.width;
    const scale = viewport.scale / this.ratio;
    const level = viewport.level(this.ratio);
    const lit = scene.lit(run.source);
    const blocks = shown.get(run.source) ?? new Set();
    shown.set(run.source, blocks);
    for (let block = Math.floor(run.first / BLOCK_ROWS); block * BLOCK_ROWS < run.first + run.count; block += 1) {
      blocks.add(block);
      for (const piece of blocksFor(scene.tiles, run.source, block, viewport.start, viewport.end, level, wishes)) {
        const from = Math.max(0, Math.round((piece.start - viewport.start) / scale));
        const to = Math.min(width, Math.round((piece.end - viewport.start) / scale));
        if (from >= to) continue;
        this.hasSlices = true;
        const window = { start: viewport.start, scale, from, to, width, labelFrom: LABEL_FROM * this.ratio };
        const low = Math.max(run.first, block * BLOCK_ROWS);
        const high = Math.min(run.first + run.count, (block + 1) * BLOCK_ROWS);
        for (let row = low; row < high; row += 1) {
          const items = piece.block.rows[row - block * BLOCK_ROWS];
          if (!items) continue;
          const line = at + row - run.first;
          const y = run.y + (row - run.first) * ROW;
          paintRow(this.rows.pixels, line * width, items, piece.block, window, palette.pixels, this.dimmed, lit, this.wide, y, source);
        }
      }
    }
  }

  /**
   * Puts the sheets on the screen: each line of slices as high as a row, curves as they are.
   * @param {ReturnType<typeof runOf>[]} runs @param {{ top: number, from: number, height: number }[]} curves
   */
  stretch(runs, curves) {
    const { ctx, ratio } = this;
    const palette = /** @type {import("./colours.js").Palette} */ (this.palette);
    const pixels = this.canvas.width;
    const width = pixels / ratio;
    let at = 1;
    for (const run of runs) {
      ctx.drawImage(this.rows.canvas, 0, at, pixels, run.count, 0, run.y, width, run.count * ROW);
      at += run.count;
    }
    for (const { top, from, height } of curves) ctx.drawImage(this.curves.canvas, 0, from, pixels, height, 0, top, width, height / ratio);
    for (const run of runs) {
      ctx.fillStyle = run.isStrip ? palette.card : palette.paper;
      for (let row = 1; row <= run.count; row += 1) ctx.fillRect(0, run.y + row * ROW - 1, width, 1);
    }
  }

  /** @param {Scene} scene @param {Source[]} sources */
  paintNames(scene, sources) {
    const { ctx, wide, labels, ratio } = this;
    const palette = /** @type {import("./colours.js").Palette} */ (this.palette);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    let ink = "";
    let { above, alike } = wide.widest(scene.isMoving ? LABELS_IN_MOTION : Infinity);
    for (let at = 0; at < wide.count; at += 1) {
      if (wide.width[at] < above || (wide.width[at] === above && (alike -= 1) < 0)) continue;
      const name = scene.names(sources[wide.source[at]]).short(wide.label[at]);
      if (!name) continue;
      const room = wide.width[at] / ratio - 6;
      const text = labels.fit(name, room);
      if (!text) continue;
      const style = wide.label[at] >>> 24;
      if (palette.inks[style] !== ink) {
        ink = palette.inks[style];
        ctx.fillStyle = ink;
      }
      ctx.fillText(text, wide.x[at] / ratio + 3, wide.y[at] + ROW / 2);
    }
  }
}

/** The rows of a line that are in view. @param {Line} line @param {Scene} scene */
function runOf(line, scene) {
  const top = line.y - scene.scroll + (line.kind === "group" ? (GROUP_HEIGHT - ROW) / 2 : 2);
  const skip = Math.max(0, Math.min(line.rows - 1, Math.floor(-top / ROW)));
  const most = Math.ceil((scene.height - (top + skip * ROW)) / ROW);
  const count = Math.max(0, Math.min(line.rows - skip, most));
  return { source: /** @type {Source} */ (line.source), first: line.row + skip, count, y: top + skip * ROW, isStrip: line.kind === "group", isPinned: line.pinned };
}
