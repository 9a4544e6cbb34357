// What the viewer asks the server: layouts, names, tiles, counters, details. All below api/runs/{id}/timeline/.

import { Names } from "./names.js";

/** @typedef {import("../types").Source} Source */

const MOST_RANKS = 64; // of one question

/** What requests about a rank carry: `moved` where its events were put on the clock of the one that is shown. @param {import("../types").Layout} layout */
function queryOf(layout) {
  return { key: layout.key, rank: layout.rank, ...(layout.moved === null ? {} : { moved: layout.moved }) };
}

/** @param {import("../types").Layout} layout @param {number} zero when time begins @returns {Source} */
export function eventsOf(layout, zero) {
  return {
    id: `${layout.rank}`, query: queryOf(layout), shift: layout.shift_ns - zero, rank: layout.rank, layer: "events",
  };
}

/** Folded devices: the same events, all streams of a device in one row. @param {Source} events @returns {Source} */
export function mergedOf(events) {
  return { ...events, id: `${events.id}/merged`, query: { ...events.query, layer: "merged" } };
}

/** @param {import("../types").Layout} layout @param {string} layer @param {number} zero when time begins @returns {Source} */
export function layerOf(layout, layer, zero) {
  return {
    id: `${layout.rank}/${layer}`, query: { ...queryOf(layout), layer }, shift: layout.shift_ns - zero, rank: layout.rank, layer,
  };
}

/** Requests of one run. */
export class Asker {
  /** @param {import("../../types").Api} api @param {string} run @param {() => void} onNames */
  constructor(api, run, onNames) {
    this.api = api;
    this.base = `api/runs/${encodeURIComponent(run)}/timeline`;
    this.onNames = onNames;
    /** @type {Map<string, Names>} */
    this.named = new Map();
    /** @type {Map<number, number | null>} the rank on whose clock another one was put */
    this.moved = new Map();
  }

  /** @param {number} rank */
  who(rank) {
    return { rank, moved: this.moved.get(rank) ?? null };
  }

  /** @param {number | null} rank @param {number | null} [beside] @returns {Promise<import("../types").Layout>} */
  async layout(rank, beside = null) {
    const found = await this.api.get(`${this.base}/layout`, { rank, beside });
    this.moved.set(found.rank, found.moved);
    return found;
  }

  /** @param {Source} source @returns {Promise<{ rows: import("../types").LayerRow[], note: string }>} */
  layer(source) {
    return this.api.get(`${this.base}/layer`, source.query);
  }

  /** @param {Source} source */
  names(source) {
    let found = this.named.get(source.id);
    if (!found) {
      found = new Names((page) => this.api.get(`${this.base}/names`, { ...source.query, page }), this.onNames);
      this.named.set(source.id, found);
    }
    return found;
  }

  /** @param {Source} source @param {number} level @param {number} index @param {number[]} blocks */
  tile(source, level, index, blocks) {
    return this.api.bytes(`${this.base}/tiles`, { ...source.query, level, index, blocks: blocks.join(",") });
  }

  /** @param {number} rank @returns {Promise<{ counters: import("../types").CounterShown[] }>} */
  counters(rank) {
    return this.api.get(`${this.base}/counters`, this.who(rank));
  }

  /** @param {Source} source @param {string} counter @param {number} level @param {number} index */
  counter(source, counter, level, index) {
    return this.api.bytes(`${this.base}/counter`, { ...source.query, counter, level, index });
  }

  /** @param {number} rank @param {string} layer @param {number} id */
  event(rank, layer, id) {
    return this.api.get(`${this.base}/event`, { ...this.who(rank), layer: layer === "events" ? null : layer, id });
  }

  /** The events behind a figure. @param {string} of a handle @param {string} facts as JSON @param {number | null} rank @returns {Promise<import("../types").EventsFound>} */
  events(of, facts, rank) {
    return this.api.get(this.base.replace(/timeline$/, "events"), { of, with: facts || null, rank });
  }

  /** @param {number} rank @param {number} id */
  arguments(rank, id) {
    return this.api.get(`${this.base}/arguments`, { rank, id });
  }

  /** @param {number} rank @param {number} id @returns {Promise<import("../types").WaitsShown>} */
  waits(rank, id) {
    return this.api.get(`${this.base}/waits`, { ...this.who(rank), id });
  }

  /** The same collective on other ranks. @param {number} rank @param {number} id @param {number[]} ranks @param {number} beside the one that is shown @returns {Promise<{ calls: import("../types").CallShown[] }>} */
  meeting(rank, id, ranks, beside) {
    return this.api.get(`${this.base}/meeting`, { rank, id, ranks: ranks.slice(0, MOST_RANKS).join(","), beside });
  }

  /** The slice of the critical path at a moment. @param {number} rank @param {bigint} at */
  onPath(rank, at) {
    return this.api.get(`${this.base}/path`, { ...this.who(rank), at: String(at) });
  }

  /** The slice before or after in its row. @param {number} rank @param {string} layer @param {number} id @param {number} by */
  neighbour(rank, layer, id, by) {
    return this.api.get(`${this.base}/neighbour`, { ...this.who(rank), layer: layer === "events" ? null : layer, id, by });
  }

  /** @param {number} rank @param {string} text */
  search(rank, text) {
    return this.api.get(`${this.base}/search`, { ...this.who(rank), q: text });
  }

  /** A page of the hits. @param {number} rank @param {string} text @param {number} first @returns {Promise<import("../types").HitsListed>} */
  hitList(rank, text, first) {
    return this.api.get(`${this.base}/hitlist`, { ...this.who(rank), q: text, first });
  }

  /** How many hits every rank has. @param {string} text @returns {Promise<{ count: number, ranks: { rank: number, count: number }[] }>} */
  hits(text) {
    return this.api.get(`${this.base}/hits`, { q: text });
  }

  /** The hit before or after a moment of the rank's own time. @param {number} rank @param {string} text @param {bigint | number} at @param {number | null} id @param {number} by */
  found(rank, text, at, id, by) {
    return this.api.get(`${this.base}/found`, { ...this.who(rank), q: text, at: String(at), id, by });
  }

  /** @param {number} rank @param {bigint} start @param {bigint} end @param {number[]} tracks */
  range(rank, start, end, tracks) {
    return this.api.get(`${this.base}/range`, { ...this.who(rank), start: String(start), end: String(end), tracks: tracks.join(",") });
  }

  /** Totals by category or module. @param {number} rank @param {bigint} start @param {bigint} end @param {number[]} tracks @param {string} by */
  pivot(rank, start, end, tracks, by) {
    return this.api.get(`${this.base}/pivot`, { ...this.who(rank), start: String(start), end: String(end), tracks: tracks.join(","), by });
  }

  /** What follows WHERE in a query for the events of a range. @param {number} rank @param {bigint} start @param {bigint} end @param {number[]} tracks */
  where(rank, start, end, tracks) {
    return this.api.get(`${this.base}/where`, { ...this.who(rank), start: String(start), end: String(end), tracks: tracks.join(",") });
  }

  /** The address of its events as a Chrome trace. @param {number} rank @param {bigint} start @param {bigint} end @param {number[]} tracks */
  rangeFile(rank, start, end, tracks) {
    return this.api.url(`${this.base}/chrome`, { ...this.who(rank), start: String(start), end: String(end), tracks: tracks.join(",") });
  }

  /** The account of a range. @param {number} rank @param {bigint} start @param {bigint} end */
  parts(rank, start, end) {
    return this.api.get(`${this.base}/parts`, { ...this.who(rank), start: String(start), end: String(end) });
  }
}
