// The tiles at hand, the least recently used let go first; and those on their way, no more than a few at once.

import { BLOCK_ROWS, decodeTile, tileSpan, unitOf } from "./decode.js";

/** @typedef {import("../types").Source} Source */
/** @typedef {import("../types").Block} Block */
/** @typedef {{ source: Source, level: number, index: number, block: number }} Wish */

const AT_ONCE = 1; // two would only wait for one another in the server, and for the picture that is being painted
const AT_ONCE_FAR = 2; // but most of the way to a server far away is waiting
const FAR_MS = 100;
const BLOCKS_OF_REQUEST = 32;
const MOST_BYTES = 64 << 20;
const BYTES_OF_BLOCK = 600; // what an empty one takes
const RETRY_MS = 2000;
const QUIET_MS = 150; // without a wish, before guesses are fetched

/** @param {Wish} wish */
function keyOf(wish) {
  return `${wish.source.id}:${wish.level}:${wish.index}:${wish.block}`;
}

/** Blocks of rows by source, level and index. */
export class Tiles {
  /**
   * @param {(source: Source, level: number, index: number, blocks: number[]) => Promise<ArrayBuffer>} fetchTile
   * @param {() => void} onArrival
   * @param {(error: unknown) => void} onFailure
   */
  constructor(fetchTile, onArrival, onFailure, mostBytes = MOST_BYTES) {
    this.fetchTile = fetchTile;
    this.onArrival = onArrival;
    this.onFailure = onFailure;
    this.mostBytes = mostBytes;
    /** @type {Map<string, Block>} the most recently used last */
    this.blocks = new Map();
    /** @type {Set<string>} */
    this.pending = new Set();
    /** @type {Wish[]} */
    this.wishes = [];
    /** @type {Wish[]} */
    this.guesses = [];
    this.quietTimer = 0;
    this.pumpTimer = 0;
    this.isStopped = false;
    this.bytes = 0;
    this.running = 0;
    this.begun = 0;
    this.pausedUntil = 0;
    /** @type {number[]} ms of the last requests */
    this.latencies = [];
  }

  /** How many requests may be on their way, by how long the last one was, or is so far. */
  get most() {
    const last = this.latencies[this.latencies.length - 1] ?? 0;
    return Math.max(last, performance.now() - this.begun) > FAR_MS ? AT_ONCE_FAR : AT_ONCE;
  }

  /** Asks for nothing more. */
  stop() {
    this.isStopped = true;
    clearTimeout(this.quietTimer);
    clearTimeout(this.pumpTimer);
  }

  /** @param {Source} source @param {number} level @param {number} index @param {number} block */
  get(source, level, index, block) {
    const key = `${source.id}:${level}:${index}:${block}`;
    const found = this.blocks.get(key);
    if (found) {
      this.blocks.delete(key);
      this.blocks.set(key, found);
    }
    return found;
  }

  /**
   * What is needed now, the most urgent first, and what may be needed next: that is fetched when nobody waits for
   * anything. Older wishes that were not sent are forgotten.
   * @param {Wish[]} wishes @param {Wish[]} [guesses]
   */
  want(wishes, guesses = []) {
    this.wishes = this.missing(wishes);
    this.guesses = guesses;
    clearTimeout(this.quietTimer);
    if (!this.wishes.length && guesses.length) this.quietTimer = window.setTimeout(() => this.guess(), QUIET_MS);
    // After the frame that wants them: to send a request takes a millisecond or two of it.
    clearTimeout(this.pumpTimer);
    if (this.wishes.length) this.pumpTimer = window.setTimeout(() => this.pump());
  }

  /** @param {Wish[]} wishes */
  missing(wishes) {
    return wishes.filter((wish) => !this.blocks.has(keyOf(wish)) && !this.pending.has(keyOf(wish)));
  }

  /** Fetches guesses, one request after the other. */
  guess() {
    if (this.isStopped || this.wishes.length || this.running || performance.now() < this.pausedUntil) return;
    const [head, ...rest] = this.missing(this.guesses);
    if (!head) return;
    const same = rest.filter((wish) => wish.source === head.source && wish.level === head.level && wish.index === head.index);
    this.send([head, ...same].slice(0, BLOCKS_OF_REQUEST));
  }

  pump() {
    while (!this.isStopped && this.running < this.most && this.wishes.length && performance.now() >= this.pausedUntil) {
      const head = this.wishes[0];
      /** @type {Wish[]} */
      const batch = [];
      this.wishes = this.wishes.filter((wish) => {
        const isSame = wish.source === head.source && wish.level === head.level && wish.index === head.index;
        if (!isSame || batch.length >= BLOCKS_OF_REQUEST) return true;
        batch.push(wish);
        return false;
      });
      this.send(batch);
    }
  }

  /** @param {Wish[]} batch of one source, level and index */
  async send(batch) {
    const { source, level, index } = batch[0];
    const keys = batch.map(keyOf);
    for (const key of keys) this.pending.add(key);
    this.running += 1;
    const begun = performance.now();
    this.begun = begun;
    const later = setTimeout(() => this.pump(), FAR_MS + 1);
    try {
      const numbers = batch.map((wish) => wish.block).sort((a, b) => a - b);
      const buffer = await this.fetchTile(source, level, index, numbers);
      this.latencies.push(performance.now() - begun);
      if (this.latencies.length > 5000) this.latencies.splice(0, 1000);
      this.keep(batch, buffer);
    } catch (error) {
      this.pausedUntil = performance.now() + RETRY_MS;
      if (!this.isStopped) {
        setTimeout(() => this.onArrival(), RETRY_MS + 50); // paints again, and so asks again
        this.onFailure(error);
      }
    } finally {
      clearTimeout(later);
      for (const key of keys) this.pending.delete(key);
      this.running -= 1;
      this.onArrival();
      this.pump();
      if (!this.wishes.length) this.guess();
    }
  }

  /** @param {Wish[]} batch @param {ArrayBuffer} buffer */
  keep(batch, buffer) {
    const { source, level, index } = batch[0];
    const rows = decodeTile(buffer);
    const begin = index * tileSpan(level) + source.shift;
    const share = buffer.byteLength / batch.length;
    for (const wish of batch) {
      const first = wish.block * BLOCK_ROWS;
      const own = Array.from({ length: BLOCK_ROWS }, (_, at) => rows.get(first + at));
      const block = { begin, unit: unitOf(level), end: begin + tileSpan(level), rows: own, bytes: BYTES_OF_BLOCK + share };
      this.blocks.set(keyOf(wish), block);
      this.bytes += block.bytes;
    }
    for (const [key, block] of this.blocks) {
      if (this.bytes <= this.mostBytes) break;
      this.blocks.delete(key);
      this.bytes -= block.bytes;
    }
  }
}
