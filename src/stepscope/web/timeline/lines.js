// The picture from top to bottom: pinned tracks, then for each rank its derived rows, counters and groups of tracks.

import { count, duration } from "../text/format.js";
import { mergedOf } from "./net/source.js";

/** @typedef {import("./types").Line} Line */
/** @typedef {import("./types").Layout} Layout */
/** @typedef {import("./types").Source} Source */
/** @typedef {import("./types").TrackShown} TrackShown */
/** @typedef {{ name: string, title: string, source: Source, rows: import("./types").LayerRow[] }} LayerShown */
/** @typedef {{ rank: number, layout: Layout | null, source: Source | null, layers: LayerShown[], notes: string[], counters: import("./types").CounterShown[], hits?: number }} RankShown */
/** @typedef {{ folded: Set<string>, allFolded: boolean, pinned: string[], filter: string, order: Map<string, string[]> }} Arrangement  allFolded: also what comes later */

export const ROW = 18;
export const GROUP_HEIGHT = 24;
export const COUNTER_HEIGHT = 38;
export const GAP = 5;

/** @returns {Arrangement} */
export function noArrangement() {
  return { folded: new Set(), allFolded: false, pinned: [], filter: "", order: new Map() };
}

/**
 * @param {Partial<Line> & { kind: import("./types").LineKind, key: string, title: string }} given
 * @returns {Line}
 */
function line(given) {
  return {
    detail: "", y: 0, height: ROW, row: 0, rows: 0, allRows: 0, source: null, counter: null, folded: false,
    pinned: false, events: 0, track: null, inside: [], end: 0, ...given,
  };
}

/** @param {RankShown} rank @param {TrackShown} track @param {Arrangement} state */
function trackLine(rank, track, state) {
  const key = `r${rank.rank}/t${track.id}`;
  const folded = state.folded.has(key) && track.rows > 1;
  const rows = folded ? 1 : track.rows;
  return line({
    kind: "track", key, title: track.title, detail: track.detail, source: rank.source, row: track.row, rows,
    allRows: track.rows, height: rows * ROW + GAP, folded, events: track.events, track: track.id,
  });
}

/** @param {RankShown} rank @returns {Line[]} */
function layerLines(rank) {
  return rank.layers.flatMap((layer) => layer.rows.map((each) => line({
    kind: "track", key: `r${rank.rank}/${layer.name}/${each.row}`, title: each.title, detail: each.detail,
    source: layer.source, row: each.row, rows: 1, allRows: 1, height: ROW + GAP,
  })));
}

/** @param {RankShown} rank @param {string | null} group @param {Arrangement} state @returns {Line[]} */
function counterLines(rank, group, state) {
  return rank.counters.filter((counter) => counter.group === group).map((counter) => {
    const key = `r${rank.rank}/c/${counter.id}`;
    const folded = state.folded.has(key);
    return line({
      kind: "counter", key, title: counter.title, detail: counter.detail, source: rank.source, counter, folded,
      allRows: 2, rows: folded ? 1 : 2, height: (folded ? ROW : COUNTER_HEIGHT) + GAP,
    });
  });
}

/** @template T @param {T[]} items @param {(item: T) => string} keyOf @param {string[] | undefined} order @returns {T[]} */
export function inOrder(items, keyOf, order) {
  if (!order?.length) return items;
  const place = new Map(order.map((key, at) => [key, at]));
  return [...items].sort((a, b) => (place.get(keyOf(a)) ?? 1e9) - (place.get(keyOf(b)) ?? 1e9));
}

/** Its number, and how many hits of the search it has. @param {RankShown} rank */
function rankTitle(rank) {
  return rank.hits === undefined ? `Rank ${rank.rank}` : `Rank ${rank.rank} · ${count(rank.hits)} found`;
}

/** What the heading of a rank says beside its number. @param {RankShown} rank @param {RankShown} first the one that is shown */
function rankWords(rank, first) {
  return rank.layout ? clockWords(rank.layout.clock) : `Not read yet: unfold it to see it below rank ${first.rank}, on the same clock.`;
}

/** How the rank got its place in time, and how good that is. @param {import("./types").ClockShown | null} clock */
export function clockWords(clock) {
  if (!clock) return "";
  if (clock.aligned_by === "begin") return "Its clock does not tell when it ran: it begins with the shown rank.";
  if (clock.aligned_by !== "collectives" || clock.residual_ns === null) return "By its recorded clock: it shares no all-reduce or barrier with the shown rank.";
  const drift = clock.drift_ppm ? ` and ${clock.drift_ppm} ppm` : "";
  const off = clock.offset_ns || drift ? `Its clock was ${duration(clock.offset_ns)}${drift} off` : "Its clock agrees";
  return `${off}, by the ends of ${count(clock.collectives)} collectives: those end within ${duration(clock.residual_ns)} of each other.`;
}

/** The same in a few words. @param {number} rank @param {import("./types").ClockShown | null} clock */
export function clockShort(rank, clock) {
  if (!clock) return "";
  if (clock.aligned_by === "begin") return `Rank ${rank} begins with the shown one`;
  if (clock.aligned_by !== "collectives" || clock.residual_ns === null) return `Rank ${rank} by its recorded clock`;
  return `Rank ${rank} aligned to ±${duration(clock.residual_ns)} (${count(clock.collectives)} collectives)`;
}

/** What the strip of a folded group shows: all streams of a device, of a process its first thread. @param {RankShown} rank @param {import("./types").GroupShown} group @param {boolean} folded */
function stripOf(rank, group, folded) {
  const isMerged = typeof group.merged === "number" && rank.source;
  const source = isMerged ? mergedSource(/** @type {Source} */ (rank.source)) : rank.source;
  return { source: folded ? source : null, row: isMerged ? /** @type {number} */ (group.merged) : group.tracks[0].row, rows: folded ? 1 : 0, allRows: 1 };
}

/** @type {WeakMap<Source, Source>} one for each source, as pictures compare them */
const merged = new WeakMap();

/** @param {Source} events */
function mergedSource(events) {
  const found = merged.get(events) ?? mergedOf(events);
  merged.set(events, found);
  return found;
}

/** @param {import("./types").GroupShown} group @param {boolean} folded */
function foldedWords(group, folded) {
  const tracks = `${count(group.tracks.length)} tracks`;
  if (!folded || group.tracks.length < 2) return tracks;
  return typeof group.merged === "number" ? `${tracks}, all streams in one row` : `${tracks}, of which ${group.tracks[0].title} is shown`;
}

/** @param {RankShown} rank @param {Arrangement} state @returns {Line[]} */
function rankLines(rank, state) {
  const found = [...layerLines(rank)];
  for (const note of rank.notes) found.push(line({ kind: "note", key: `r${rank.rank}/note/${note}`, title: note, height: ROW + GAP }));
  found.push(...counterLines(rank, null, state));
  for (const group of rank.layout?.groups ?? []) {
    const key = `r${rank.rank}/g/${group.id}`;
    const folded = state.folded.has(key);
    const events = group.tracks.reduce((sum, track) => sum + track.events, 0);
    found.push(line({
      kind: "group", key, title: group.title, detail: foldedWords(group, folded), height: GROUP_HEIGHT, folded, events,
      ...stripOf(rank, group, folded), inside: group.tracks.map((track) => track.id),
    }));
    const inside = [...counterLines(rank, group.id, state), ...group.tracks.map((track) => trackLine(rank, track, state))];
    found.push(...inOrder(inside, (each) => each.key, state.order.get(key)));
  }
  return found;
}

/**
 * The tracks whose names hold all words, the groups above them, and every rank: a folded one may hold more.
 * @param {Line[]} found @param {string} filter
 */
function matching(found, filter) {
  const words = filter.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return found;
  /** @param {Line} each */
  const matches = (each) => isTrack(each) && words.every((word) => `${each.title} ${each.detail}`.toLowerCase().includes(word));
  return found.filter((each, at) => {
    if (each.kind !== "group") return each.kind === "rank" || matches(each);
    const rest = found.slice(at + 1);
    const end = rest.findIndex((other) => other.kind === "group" || other.kind === "rank");
    return rest.slice(0, end < 0 ? undefined : end).some(matches);
  });
}

/** @param {Line} each */
function isTrack(each) {
  return each.kind === "track" || each.kind === "counter";
}

/** Without what lies below folded headings. @param {Line[]} found */
function unfolded(found) {
  let isRankFolded = false;
  let isGroupFolded = false;
  return found.filter((each) => {
    if (each.kind === "rank") {
      isRankFolded = each.folded;
      isGroupFolded = false;
      return true;
    }
    if (each.kind === "group") isGroupFolded = each.folded;
    return !isRankFolded && (each.kind === "group" || !isGroupFolded);
  });
}

/** Whether a filter leaves nothing but headings of ranks. @param {Line[]} lines @param {string} filter */
export function nothingMatches(lines, filter) {
  return filter.trim() !== "" && lines.every((each) => each.kind === "rank");
}

/** Everything that "Fold all" folds: the groups of these ranks as far as they were read, then their tracks and counters. @param {RankShown[]} ranks @param {Arrangement} state */
export function foldable(ranks, state) {
  const all = ranks.flatMap((rank) => rankLines(rank, state));
  return [...all.filter((each) => each.kind === "group"), ...all.filter((each) => isTrack(each) && each.allRows > 1)].map((each) => each.key);
}

/**
 * All lines with their places.
 * @param {RankShown[]} ranks
 * @param {Arrangement} state
 */
export function buildLines(ranks, state) {
  /** @type {Line[]} */
  let found = [];
  for (const rank of ranks) {
    if (ranks.length > 1) {
      const key = `r${rank.rank}`;
      const folded = rank.layout === null || state.folded.has(key);
      found.push(line({ kind: "rank", key, title: rankTitle(rank), detail: rankWords(rank, ranks[0]), events: rank.layout?.events ?? 0, height: GROUP_HEIGHT + 4, folded }));
    }
    found.push(...rankLines(rank, state));
  }
  const pinned = state.pinned
    .map((key) => found.find((each) => each.key === key))
    .filter((each) => each !== undefined)
    .map((each) => ({ ...each, pinned: true }));
  found = found.filter((each) => !state.pinned.includes(each.key));
  const all = [...pinned, ...unfolded(matching(found, state.filter))];
  let y = 0;
  for (const each of all) {
    each.y = y;
    y += each.height;
  }
  markEnds(all, y);
  return { lines: all, height: y };
}

/** Where the sections of ranks and groups end. @param {Line[]} lines @param {number} height of all */
function markEnds(lines, height) {
  let [rankEnd, groupEnd] = [height, height];
  for (const each of lines.toReversed()) {
    if (each.kind === "group") [each.end, groupEnd] = [groupEnd, each.y];
    else if (each.kind === "rank") [each.end, rankEnd, groupEnd] = [rankEnd, each.y, each.y];
  }
}

/**
 * The headings that stay at the top while their tracks are scrolled through, with their heights on the screen; the next heading pushes them out.
 * @param {Line[]} lines @param {number} scroll @returns {{ line: Line, y: number }[]}
 */
export function stuckLines(lines, scroll) {
  const rank = stuckAt(lines, scroll, 0, "rank");
  const below = rank ? rank.y + rank.line.height : 0;
  const group = stuckAt(lines, scroll, Math.max(0, below), "group");
  const isInside = group && (!rank || group.line.y > rank.line.y);
  return [...(isInside ? [group] : []), ...(rank ? [rank] : [])];
}

/** @param {Line[]} lines @param {number} scroll @param {number} top where it sticks @param {"rank" | "group"} kind */
function stuckAt(lines, scroll, top, kind) {
  for (let at = Math.min(lineAt(lines, scroll + top), lines.length - 1); at >= 0; at -= 1) {
    const line = lines[at];
    if (line.kind === "rank" && kind === "group") return null;
    if (line.kind !== kind || line.y >= scroll + top) continue;
    const y = Math.min(top, line.end - scroll - line.height);
    return line.end > scroll + top && y > line.y - scroll ? { line, y } : null;
  }
  return null;
}

/** How much of the top of the view stuck headings cover. @param {{ line: Line, y: number }[]} stuck */
export function stuckHeight(stuck) {
  return Math.max(0, ...stuck.map(({ line, y }) => y + line.height));
}

/** The first line that reaches below y; lines.length if none does. @param {Line[]} lines @param {number} y */
export function lineAt(lines, y) {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].y + lines[middle].height <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}
