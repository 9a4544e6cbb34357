// The mouse, a pen or a finger on the picture, the minimap, the ruler and the edge of the drawer.

import { h } from "../../ui/dom.js";
import { count, duration } from "../../text/format.js";
import { counterText, valueAt } from "../draw/counters.js";
import { sourceId } from "../draw/overlay.js";
import { heightOf, rowAt, tracksBetween } from "./hits.js";
import { Viewport } from "../viewport.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {import("./selection.js").Selection} Selection */

const DRAG_FROM = 4; // pixels
const WHEEL_ZOOM = 0.0022;

/** Follows the pointer from when it goes down until it is let go. @param {PointerEvent} event @param {(event: PointerEvent) => void} move @param {(event: PointerEvent) => void} [end] */
function follow(event, move, end = () => {}) {
  const target = /** @type {HTMLElement} */ (event.currentTarget);
  target.setPointerCapture(event.pointerId);
  const stop = (/** @type {PointerEvent} */ last) => {
    target.removeEventListener("pointermove", move);
    target.removeEventListener("pointerup", stop);
    target.removeEventListener("pointercancel", stop);
    end(last);
  };
  target.addEventListener("pointermove", move);
  target.addEventListener("pointerup", stop);
  target.addEventListener("pointercancel", stop);
}

/** @param {Timeline} timeline @param {Selection} selection @param {import("./keys.js").Keys} keys */
export function listen(timeline, selection, keys) {
  const { overlay, minimap, ruler, grip, drawer, stage } = timeline.elements;
  const tip = h("div", { class: "tl-tip", hidden: true, role: "tooltip" });
  stage.append(tip);
  timeline.beforeFrame.push(() => tipOfKeys(timeline, selection, keys, tip));
  overlay.addEventListener("pointermove", (event) => hover(timeline, keys, tip, event));
  overlay.addEventListener("pointerleave", () => {
    keys.isLeading = false;
    timeline.marked.hover = null;
    tip.hidden = true;
    timeline.invalidate();
  });
  overlay.addEventListener("pointerdown", (event) => press(timeline, selection, keys, tip, event));
  overlay.addEventListener("dblclick", () => selection.fill());
  overlay.addEventListener("wheel", (event) => wheel(timeline, event), { passive: false });
  timeline.elements.side.addEventListener("wheel", (event) => timeline.scrollTo(timeline.scroll + event.deltaY), { passive: true });
  ruler.addEventListener("pointerdown", (event) => dragRange(timeline, selection, event, null));
  minimap.addEventListener("pointerdown", (event) => brush(timeline, event));
  for (const strip of [minimap, ruler]) strip.addEventListener("wheel", (event) => wheel(timeline, event), { passive: false });
  grip.addEventListener("pointerdown", (event) => {
    const from = event.clientY;
    const height = drawer.offsetHeight;
    follow(event, (move) => { drawer.style.height = `${Math.max(80, Math.min(innerHeight * 0.75, height + from - move.clientY))}px`; });
  });
}

/** @param {Timeline} timeline @param {WheelEvent} event */
function wheel(timeline, event) {
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 18 : 1;
  if (event.ctrlKey || event.metaKey) timeline.viewport.zoom(Math.exp(event.deltaY * unit * WHEEL_ZOOM), event.offsetX);
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.viewport.pan((event.deltaX || event.deltaY) * unit);
  else {
    timeline.scrollTo(timeline.scroll + event.deltaY * unit);
    return;
  }
  timeline.onChange();
  timeline.invalidate();
}

/** @param {Timeline} timeline @param {import("./keys.js").Keys} keys @param {HTMLElement} tip @param {PointerEvent} event */
function hover(timeline, keys, tip, event) {
  keys.pointer = event.offsetX / timeline.viewport.width;
  keys.isLeading = false;
  if (event.buttons) {
    tip.hidden = true;
    return;
  }
  const hit = timeline.hit(event.offsetX, event.offsetY);
  const before = timeline.marked.hover;
  const text = hit ? sliceTip(timeline, hit) : counterTip(timeline, event);
  if (hit?.id !== before?.id || hit?.row !== before?.row) {
    timeline.marked.hover = hit;
    timeline.invalidate();
  }
  timeline.elements.overlay.style.cursor = hit ? "pointer" : "crosshair";
  tip.hidden = text.length === 0;
  if (!text.length) return;
  fillTip(tip, text);
  placeTip(timeline, tip, event.offsetX, event.offsetY);
}

/** @param {HTMLElement} tip @param {string[]} text */
function fillTip(tip, text) {
  tip.replaceChildren(...text.map((line, at) => h("div", { class: at ? "faint" : "" }, line)));
}

/** Beside a place of the picture. @param {Timeline} timeline @param {HTMLElement} tip @param {number} x @param {number} y */
function placeTip(timeline, tip, x, y) {
  const { offsetLeft } = timeline.elements.canvas.parentElement ?? timeline.elements.canvas;
  tip.style.left = `${Math.min(offsetLeft + x + 14, timeline.elements.stage.clientWidth - tip.offsetWidth - 20)}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > timeline.height ? y - tip.offsetHeight - 8 : y + 18}px`;
}

/** After a key has led to a slice: the tip that the pointer would show there. @param {Timeline} timeline @param {Selection} selection @param {import("./keys.js").Keys} keys @param {HTMLElement} tip */
function tipOfKeys(timeline, selection, keys, tip) {
  if (!keys.isLeading) return;
  const { chosen, shown } = selection;
  const place = chosen && heightOf(timeline.lines, sourceId(chosen.rank, chosen.layer), chosen.row, chosen);
  const { viewport } = timeline;
  const isThere = place && shown && shown.id === chosen.id && chosen.start < viewport.end && chosen.start + chosen.dur >= viewport.start;
  tip.hidden = !isThere;
  if (!isThere) return;
  const words = sliceWords(shown.name, chosen.dur);
  if (tip.textContent !== words.join("")) fillTip(tip, words);
  placeTip(timeline, tip, Math.max(0, viewport.x(chosen.start)), place.y - timeline.scroll + 4);
}

/** @param {string} name @param {number} dur */
function sliceWords(name, dur) {
  return [name.length > 300 ? `${name.slice(0, 300)}…` : name, dur ? duration(dur) : "no duration"];
}

/** @param {Timeline} timeline @param {import("../types").Hit} hit */
function sliceTip(timeline, hit) {
  const lines = sliceWords(timeline.ask.names(hit.source).full(hit.label) ?? "…", hit.dur);
  if (hit.count > 1) lines.push(`the longest of ${count(hit.count)} slices here: zoom in to see them`);
  return lines;
}

/** @param {Timeline} timeline @param {PointerEvent} event */
function counterTip(timeline, event) {
  const line = rowAt(timeline.lines, event.offsetY + timeline.scroll)?.line;
  if (line?.kind !== "counter" || !line.counter || !line.source) return [];
  const level = timeline.viewport.level(1) + 1;
  const time = timeline.viewport.time(event.offsetX);
  const index = Math.floor((time - line.source.shift) / (2 ** level * 1024));
  const tile = timeline.counters.get(line.source, line.counter.id, level, index, false);
  const value = tile ? valueAt([tile], time) : null;
  return value === null ? [] : [`${line.counter.title}: ${counterText(value, line.counter.unit)}`, line.counter.detail];
}

/** @param {Timeline} timeline @param {Selection} selection @param {import("./keys.js").Keys} keys @param {HTMLElement} tip @param {PointerEvent} event */
function press(timeline, selection, keys, tip, event) {
  if (event.button !== 0 && event.button !== 1) return;
  timeline.elements.overlay.focus({ preventScroll: true });
  keys.isLeading = false;
  tip.hidden = true;
  if (event.shiftKey || event.button === 1) {
    let { offsetX, offsetY } = event;
    timeline.elements.overlay.style.cursor = "grabbing";
    follow(event, (move) => {
      timeline.viewport.pan(offsetX - move.offsetX);
      timeline.scrollTo(timeline.scroll + offsetY - move.offsetY);
      ({ offsetX, offsetY } = move);
      timeline.onChange();
      timeline.invalidate();
    });
    return;
  }
  dragRange(timeline, selection, event, event.offsetY + timeline.scroll);
}

/** @param {Timeline} timeline @param {Selection} selection @param {PointerEvent} event @param {number | null} top null for all tracks */
function dragRange(timeline, selection, event, top) {
  const from = event.offsetX;
  const begin = timeline.viewport.time(from);
  let range = /** @type {{ start: number, end: number } | null} */ (null);
  follow(event, (move) => {
    if (!range && Math.abs(move.offsetX - from) < DRAG_FROM) return;
    const now = timeline.viewport.time(move.offsetX);
    range = timeline.marked.range = { start: Math.min(begin, now), end: Math.max(begin, now) };
    timeline.invalidate();
  }, (last) => {
    if (!range) {
      if (top !== null) selection.choose(timeline.hit(from, top - timeline.scroll));
      return;
    }
    const bottom = last.offsetY + timeline.scroll;
    const tracks = top === null ? tracksBetween(timeline.lines, -1, Infinity) : tracksBetween(timeline.lines, Math.min(top, bottom), Math.max(top, bottom));
    selection.chooseRange(range.start, range.end, tracks);
  });
}

/** Drag outside of the brush to draw a new one, inside to move it. @param {Timeline} timeline @param {PointerEvent} event */
function brush(timeline, event) {
  const { viewport } = timeline;
  const whole = new Viewport(viewport.low, viewport.high);
  whole.width = viewport.width;
  const from = whole.time(event.offsetX);
  const isInside = from > viewport.start && from < viewport.end && viewport.span < (viewport.high - viewport.low) * 0.95;
  const { start, span } = viewport;
  let isDragged = false;
  const show = (/** @type {number} */ low, /** @type {number} */ high) => {
    viewport.show(low, high);
    timeline.onChange();
    timeline.invalidate();
  };
  follow(event, (move) => {
    const now = whole.time(move.offsetX);
    isDragged ||= Math.abs(move.offsetX - event.offsetX) >= DRAG_FROM;
    if (!isDragged) return;
    if (isInside) show(start + now - from, start + now - from + span);
    else show(Math.min(from, now), Math.max(from, now));
  }, () => {
    if (!isDragged && !isInside) show(from - span / 2, from + span / 2);
  });
}
