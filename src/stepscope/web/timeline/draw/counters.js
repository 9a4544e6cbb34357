// Counters: their tiles, and how they are drawn.

import { size, share, significant } from "../../text/format.js";
import { curveOf } from "./curve.js";
import { tileSpan, tilesOf } from "../net/decode.js";
import { FONT } from "./labels.js";

/** @typedef {import("../types").CounterTile} CounterTile */
/** @typedef {import("../types").Source} Source */
/** @typedef {import("../types").Line} Line */

const MOST = 3000;
const RETRY_MS = 3000;
const AT_ONCE = 6; // as many as a browser sends
const AT_ONCE_IN_MOTION = 1; // the next frame shows another time, and slices come first

/** @param {ArrayBuffer} buffer @param {number} begin @param {number} step @returns {CounterTile} */
export function decodeCounter(buffer, begin, step) {
  const count = buffer.byteLength / 16;
  return {
    begin,
    step,
    places: new Int32Array(buffer, 0, count),
    lows: new Float32Array(buffer, 4 * count, count),
    highs: new Float32Array(buffer, 8 * count, count),
    lasts: new Float32Array(buffer, 12 * count, count),
  };
}

/** The tiles of counters that are at hand. */
export class CounterTiles {
  /**
   * @param {(source: Source, counter: string, level: number, index: number) => Promise<ArrayBuffer>} fetchTile
   * @param {() => void} onArrival
   */
  constructor(fetchTile, onArrival) {
    this.fetchTile = fetchTile;
    this.onArrival = onArrival;
    /** @type {Map<string, CounterTile | null>} null while it is on its way */
    this.tiles = new Map();
    this.pausedUntil = 0;
    this.running = 0;
    this.timer = 0;
    /** @type {{ key: string, source: Source, counter: string, level: number, index: number }[]} what the frame lacks */
    this.wishes = [];
  }

  /** What is at hand; what is not is noted where it may be asked for. @param {Source} source @param {string} counter @param {number} level @param {number} index @param {boolean} mayAsk */
  get(source, counter, level, index, mayAsk) {
    const key = `${source.id}:${counter}:${level}:${index}`;
    const found = this.tiles.get(key);
    if (found === undefined && mayAsk && performance.now() > this.pausedUntil) this.wishes.push({ key, source, counter, level, index });
    return found ?? null;
  }

  /** Asks for what the frame lacked, after it: to send a request takes a millisecond or two. What is not sent the next frame wishes again. @param {boolean} isMoving */
  ask(isMoving) {
    const { wishes } = this;
    this.wishes = [];
    clearTimeout(this.timer);
    if (!wishes.length) return;
    this.timer = window.setTimeout(() => {
      for (const wish of wishes) if (this.running < (isMoving ? AT_ONCE_IN_MOTION : AT_ONCE)) this.load(wish);
    });
  }

  /** @param {CounterTiles["wishes"][number]} wish */
  async load({ key, source, counter, level, index }) {
    this.tiles.set(key, null);
    this.running += 1;
    try {
      const buffer = await this.fetchTile(source, counter, level, index);
      this.tiles.set(key, decodeCounter(buffer, index * tileSpan(level) + source.shift, 2 ** level));
      const oldest = this.tiles.keys().next().value;
      if (this.tiles.size > MOST && oldest !== undefined) this.tiles.delete(oldest);
    } catch {
      this.tiles.delete(key);
      this.pausedUntil = performance.now() + RETRY_MS;
    }
    this.running -= 1;
    this.onArrival();
  }
}

/** A value of a counter with its unit. @param {number} value @param {string} unit */
export function counterText(value, unit) {
  if (unit === "bytes") return size(value);
  if (unit === "share") return share(value);
  return `${significant(value)}${unit ? ` ${unit}` : ""}`;
}

/** The tiles in view, or coarser ones. @param {import("./painter.js").Scene} scene @param {Line} line @param {number} level @param {boolean} mayAsk */
function tilesFor(scene, line, level, mayAsk) {
  const source = /** @type {Source} */ (line.source);
  const counter = /** @type {import("../types").CounterShown} */ (line.counter);
  const { first, last } = tilesOf(scene.viewport.start - source.shift, scene.viewport.end - source.shift, level);
  /** @type {CounterTile[]} */
  const found = [];
  for (let index = first; index <= last; index += 1) {
    const exact = scene.counters.get(source, counter.id, level, index, mayAsk);
    if (exact) found.push(exact);
    else {
      for (let up = 1; up <= 16; up += 1) {
        const coarse = scene.counters.get(source, counter.id, level + up, Math.floor(index / 2 ** up), false);
        if (coarse) {
          if (!found.includes(coarse)) found.push(coarse);
          break;
        }
      }
    }
  }
  return found;
}

/** The greatest value in view, at least `least`. @param {CounterTile[]} tiles @param {number} least */
export function greatest(tiles, least) {
  let found = least;
  for (const tile of tiles) for (let at = 0; at < tile.highs.length; at += 1) if (tile.highs[at] > found) found = tile.highs[at];
  return found;
}

/**
 * The value at a moment: that of the last sample before it.
 * @param {CounterTile[]} tiles @param {number} time
 */
export function valueAt(tiles, time) {
  let found = null;
  for (const tile of tiles) {
    for (let at = 0; at < tile.places.length; at += 1) {
      if (tile.begin + Math.max(0, tile.places[at]) * tile.step > time) break;
      found = tile.lasts[at];
    }
  }
  return found;
}

/**
 * The curve of a counter as far as it is at hand, and the greatest value in view.
 * @param {Line} line @param {import("./painter.js").Scene} scene @param {number} columns of pixels @param {boolean} mayAsk
 */
export function counterCurve(line, scene, columns, mayAsk) {
  const counter = /** @type {import("../types").CounterShown} */ (line.counter);
  const { viewport } = scene;
  // A step coarser than slices: a curve needs no more than a point a pixel.
  const tiles = tilesFor(scene, line, viewport.level(1) + 1, mayAsk);
  const most = greatest(tiles, counter.unit === "share" ? 1 : 1e-9);
  return { curve: curveOf(tiles, viewport.start, viewport.span / columns, columns), most };
}

/**
 * The greatest value in view, in words.
 * @param {CanvasRenderingContext2D} ctx @param {Line} line @param {number} top @param {number} most @param {import("./colours.js").Palette} palette
 */
export function paintGreatest(ctx, line, top, most, palette) {
  const counter = /** @type {import("../types").CounterShown} */ (line.counter);
  const text = counterText(most, counter.unit);
  ctx.font = FONT;
  ctx.textBaseline = "top";
  ctx.fillStyle = palette.paper;
  ctx.globalAlpha = 0.7;
  ctx.fillRect(2, top, ctx.measureText(text).width + 6, 13);
  ctx.globalAlpha = 1;
  ctx.fillStyle = palette.faint;
  ctx.fillText(text, 5, top + 1);
}
