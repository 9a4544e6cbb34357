// What lies over the picture: the selected slice and its links, the selected range, marks, and the slice under the pointer.

import { duration } from "../../text/format.js";
import { groupOf, heightOf } from "../act/hits.js";
import { lastToCome } from "../act/related.js";
import { FONT } from "./labels.js";
import { ROW, stuckHeight, stuckLines } from "../lines.js";

/** @typedef {import("../types").Chosen} Chosen */
/** @typedef {import("../types").LinkShown} LinkShown */
/**
 * @typedef {{ hover: import("../types").Hit | null, chosen: Chosen | null, links: LinkShown[], waits: (import("../types").WaitShown & { direction: "to" | "from" })[], meeting: import("../types").CallShown[], range: { start: number, end: number } | null,
 *   marks: { start: number, end: number, kept: boolean }[], bands: { start: number, end: number, isCurrent: boolean }[], pointer: number | null }} Marked
 */

const MOST_ARROWS = 60;

/** @param {number} rank @param {string} layer */
export function sourceId(rank, layer) {
  return layer === "events" ? `${rank}` : `${rank}/${layer}`;
}

/** How far rows that come or go move the selected slice, where it is in view: it stays where it is. @param {import("./painter.js").Scene} scene @param {import("../types").Line[]} lines the new ones @param {Chosen | null} chosen */
export function movedBy(scene, lines, chosen) {
  if (!chosen) return 0;
  const [before, after] = [scene.lines, lines].map((each) => heightOf(each, sourceId(chosen.rank, chosen.layer), chosen.row, chosen));
  return before && after && before.y >= scene.scroll && before.y < scene.scroll + scene.height ? after.y - before.y : 0;
}

/**
 * Paints on the same canvas as the slices: a second one of that size would cost more than painting them again.
 * @param {CanvasRenderingContext2D} ctx @param {import("./painter.js").Scene} scene @param {Marked} marked
 * @param {import("./colours.js").Palette} palette @param {(rank: number, after: number) => number} placeOf
 */
export function paintOverlay(ctx, scene, marked, palette, placeOf) {
  const { width } = scene.viewport;
  const x = (/** @type {number} */ time) => Math.max(-10, Math.min(width + 10, scene.viewport.x(time)));
  paintBands(ctx, scene, marked.bands, palette, x);
  for (const mark of marked.marks) {
    ctx.fillStyle = palette.accent;
    ctx.globalAlpha = mark.kept ? 0.9 : 0.5;
    for (const at of [mark.start, mark.end]) ctx.fillRect(Math.round(x(at)), 0, 1, scene.height);
    ctx.globalAlpha = 0.08;
    ctx.fillRect(x(mark.start), 0, x(mark.end) - x(mark.start), scene.height);
    ctx.globalAlpha = 1;
  }
  const isRangeInView = marked.range && marked.range.end >= scene.viewport.start && marked.range.start <= scene.viewport.end;
  if (marked.range && isRangeInView) paintRange(ctx, x(marked.range.start), x(marked.range.end), scene.height, marked.range.end - marked.range.start, palette);
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, stuckHeight(stuckLines(scene.lines, scene.scroll)), width, scene.height);
  ctx.clip(); // what a heading at the top covers is not pointed at
  if (marked.hover) {
    const { hover } = marked;
    const place = heightOf(scene.lines, hover.source.id, hover.row);
    if (place) outline(ctx, x(hover.start), x(hover.start + hover.dur), place.y - scene.scroll, palette.ink, 1);
  }
  if (marked.meeting.length) paintMeeting(ctx, scene, marked.meeting, palette, x, placeOf);
  if (marked.chosen) {
    const known = new Set(marked.links.map((link) => link.id));
    const waits = marked.waits.filter((wait) => wait.decides && !known.has(wait.id));
    ctx.setLineDash([5, 3]);
    paintChosen(ctx, scene, marked.chosen, waits, palette, x, placeOf);
    ctx.setLineDash([]);
    paintChosen(ctx, scene, marked.chosen, marked.links, palette, x, placeOf);
  }
  ctx.restore();
}

/**
 * Where listed events are: a tint from top to bottom; those on the same pixel as the one before add nothing.
 * @param {CanvasRenderingContext2D} ctx @param {import("./painter.js").Scene} scene @param {Marked["bands"]} bands
 * @param {import("./colours.js").Palette} palette @param {(time: number) => number} x
 */
function paintBands(ctx, scene, bands, palette, x) {
  const { start, end } = scene.viewport;
  const seen = new Set();
  ctx.fillStyle = palette.accent;
  for (const band of bands) {
    if (band.end < start || band.start > end) continue;
    const left = Math.round(x(band.start));
    const wide = Math.max(1, Math.round(x(band.end)) - left);
    if (!band.isCurrent && wide === 1 && seen.has(left)) continue;
    seen.add(left);
    ctx.globalAlpha = band.isCurrent ? 0.2 : 0.08;
    ctx.fillRect(left, 0, wide, scene.height);
    ctx.globalAlpha = band.isCurrent ? 1 : 0.6;
    ctx.fillRect(left, 0, wide, 3);
  }
  ctx.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} ctx @param {number} left @param {number} right @param {number} y @param {string} colour @param {number} weight */
function outline(ctx, left, right, y, colour, weight) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = weight;
  ctx.strokeRect(left - weight / 2, y - weight / 2, Math.max(2, right - left - 1) + weight, ROW - 1 + weight);
}

/**
 * @param {CanvasRenderingContext2D} ctx @param {number} left @param {number} right @param {number} height @param {number} ns
 * @param {import("./colours.js").Palette} palette
 */
function paintRange(ctx, left, right, height, ns, palette) {
  ctx.fillStyle = palette.accent;
  ctx.globalAlpha = 0.12;
  ctx.fillRect(left, 0, right - left, height);
  ctx.globalAlpha = 1;
  ctx.fillRect(Math.round(left), 0, 1, height);
  ctx.fillRect(Math.round(right) - 1, 0, 1, height);
  const text = duration(ns);
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  const wide = ctx.measureText(text).width + 12;
  const middle = Math.max(wide / 2, (Math.max(0, left) + right) / 2);
  ctx.fillRect(middle - wide / 2, 4, wide, 18);
  ctx.fillStyle = palette.paper;
  ctx.fillText(text, middle - wide / 2 + 6, 13);
}

/**
 * @param {CanvasRenderingContext2D} ctx @param {import("./painter.js").Scene} scene @param {Chosen} chosen @param {Pick<LinkShown, "direction" | "row" | "track" | "after_ns" | "dur_ns">[]} links
 * @param {import("./colours.js").Palette} palette @param {(time: number) => number} x @param {(rank: number, after: number) => number} placeOf
 */
function paintChosen(ctx, scene, chosen, links, palette, x, placeOf) {
  const own = heightOf(scene.lines, sourceId(chosen.rank, chosen.layer), chosen.row, chosen);
  if (!own) return;
  const y = own.y - scene.scroll;
  outline(ctx, x(chosen.start), x(chosen.start + chosen.dur), y, palette.ink, 2);
  for (const link of links.slice(0, MOST_ARROWS)) {
    const other = heightOf(scene.lines, sourceId(chosen.rank, "events"), link.row, { rank: chosen.rank, track: link.track });
    if (!other) continue;
    const start = placeOf(chosen.rank, link.after_ns);
    const there = { start, end: start + link.dur_ns, y: other.y - scene.scroll };
    const here = { start: chosen.start, end: chosen.start + chosen.dur, y };
    const [from, to] = link.direction === "to" ? [here, there] : [there, here];
    outline(ctx, x(there.start), x(there.end), there.y, palette.accent, 1.5);
    arrow(ctx, x(from.end), from.y + ROW / 2, x(to.start), to.y + ROW / 2, palette.accent, palette.paper);
  }
}

/**
 * One collective on several ranks: from the one that came last, at that moment, to those that waited for it.
 * @param {CanvasRenderingContext2D} ctx @param {import("./painter.js").Scene} scene @param {import("../types").CallShown[]} calls
 * @param {import("./colours.js").Palette} palette @param {(time: number) => number} x @param {(rank: number, after: number) => number} placeOf
 */
function paintMeeting(ctx, scene, calls, palette, x, placeOf) {
  const places = calls.flatMap((call) => {
    const found = heightOf(scene.lines, sourceId(call.rank, "events"), call.row) ?? groupOf(scene.lines, call.rank, call.track);
    const start = placeOf(call.rank, call.after_ns);
    return found ? [{ call, start, end: start + call.dur_ns, y: found.y - scene.scroll }] : [];
  });
  const last = places.find(({ call }) => call === lastToCome(calls));
  for (const place of places) {
    outline(ctx, x(place.start), x(place.end), place.y, palette.error, 1.5);
    if (!last || place === last) continue;
    const moment = Math.min(place.end, Math.max(place.start, last.start));
    arrow(ctx, x(last.start), last.y + ROW / 2, x(moment), place.y + ROW / 2, palette.error, palette.paper);
  }
}

/** A bow from one slice to another. @param {CanvasRenderingContext2D} ctx @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {string} colour @param {string} halo */
function arrow(ctx, x0, y0, x1, y1, colour, halo) {
  const bend = Math.max(14, Math.min(90, Math.abs(x1 - x0) / 2));
  const path = new Path2D();
  path.moveTo(x0, y0);
  path.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
  ctx.strokeStyle = halo;
  ctx.lineWidth = 4;
  ctx.stroke(path);
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.75;
  ctx.stroke(path);
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x1 - 7, y1 - 4);
  ctx.lineTo(x1 - 7, y1 + 4);
  ctx.closePath();
  ctx.fill();
}
