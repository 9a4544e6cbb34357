// The headings beside the picture: fold, pin and move tracks, by mouse and by keyboard.

import { arrange, h } from "../../ui/dom.js";
import { count } from "../../text/format.js";
import { lineAt, stuckHeight, stuckLines } from "../lines.js";

/** @typedef {import("../types").Line} Line */
/**
 * @typedef {{ fold(key: string): void, pin(key: string): void, move(key: string, by: number): void,
 *   drop(key: string, before: string): void, note(key: string): void }} Actions
 */

const WORDS = 23; // pixels that the words of a heading take

/** Only the lines in view are elements; one is made again when it says something else. */
export class Tracks {
  /** @param {HTMLElement} side @param {Actions} actions */
  constructor(side, actions) {
    this.side = side;
    this.actions = actions;
    this.inner = h("div", {});
    side.append(this.inner);
    /** @type {Map<string, HTMLElement>} by what they say */
    this.made = new Map();
    /** @type {Line[]} what was shown last, from where and how much of it */
    this.lines = [];
    this.scroll = -1;
    this.height = -1;
    /** @type {string | null} */
    this.dragged = null;
  }

  /** @param {Line[]} lines @param {number} scroll @param {number} height */
  update(lines, scroll, height) {
    if (lines === this.lines && scroll === this.scroll && height === this.height) return;
    Object.assign(this, { lines, scroll, height });
    const first = lineAt(lines, scroll);
    let last = first;
    while (last < lines.length && lines[last].y < scroll + height) last += 1;
    const stuck = new Map(stuckLines(lines, scroll).map((each) => [each.line, each.y]));
    const top = scroll + stuckHeight(stuckLines(lines, scroll));
    const shown = [...stuck.keys(), ...lines.slice(first, last).filter((line) => !stuck.has(line))];
    const focused = document.activeElement instanceof HTMLElement && this.inner.contains(document.activeElement) ? document.activeElement : null;
    this.made = new Map(shown.map((line) => {
      const says = `${line.key}|${line.kind}|${line.folded}|${line.pinned}|${line.allRows}|${line.events}|${line.title}|${line.detail}`;
      const element = this.made.get(says) ?? this.element(line);
      Object.assign(element.style, place(line, stuck.get(line), scroll, top));
      element.classList.toggle("stuck", stuck.has(line));
      return [says, element];
    }));
    arrange(this.inner, [...this.made.values()]);
    if (focused && document.activeElement !== focused) /** @type {HTMLElement | null} */ (this.inner.querySelector(`[data-focus="${CSS.escape(focused.dataset.focus ?? "")}"]`))?.focus();
    this.inner.style.transform = `translateY(${-scroll}px)`;
  }

  /** @param {Line} line */
  element(line) {
    const { actions } = this;
    if (line.kind === "note") {
      return h("div", { class: "tl-line note", role: "listitem" },
        h("button", { type: "button", onclick: () => actions.note(line.key) }, line.title));
    }
    const canFold = line.kind === "group" || line.kind === "rank" || line.allRows > 1;
    const fold = canFold && h("button", {
      type: "button", class: "tl-fold", "data-focus": `fold ${line.key}`, "aria-expanded": String(!line.folded),
      "aria-label": `${line.folded ? "Unfold" : "Fold"} ${line.title}`, onclick: () => actions.fold(line.key),
    }, line.folded ? "▸" : "▾");
    const canPin = line.kind === "track" || line.kind === "counter";
    const tools = canPin && h("span", { class: "tl-tools" },
      h("button", {
        type: "button", "data-focus": `pin ${line.key}`, "aria-pressed": String(line.pinned), "data-tip": line.pinned ? "Put it back" : "Keep it at the top",
        "aria-label": `${line.pinned ? "Unpin" : "Pin"} ${line.title}`, onclick: () => actions.pin(line.key),
      }, line.pinned ? "◆" : "◇"));
    const title = h("span", { class: "tl-title", "data-tip": tipOf(line) }, line.title);
    const element = h("div", {
      class: `tl-line ${line.kind}${line.pinned ? " pinned" : ""}`, role: "listitem", "data-key": line.key,
      draggable: canPin ? "true" : null,
      ondblclick: () => canFold && actions.fold(line.key),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event, line),
    }, fold, title, tools);
    if (canPin) this.draggable(element, line);
    return element;
  }

  /** @param {KeyboardEvent} event @param {Line} line */
  key(event, line) {
    if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    event.preventDefault();
    event.stopPropagation();
    this.actions.move(line.key, event.key === "ArrowUp" ? -1 : 1);
  }

  /** @param {HTMLElement} element @param {Line} line */
  draggable(element, line) {
    element.addEventListener("dragstart", (event) => {
      this.dragged = line.key;
      element.classList.add("dragged");
      event.dataTransfer?.setData("text/plain", line.title);
    });
    element.addEventListener("dragend", () => {
      this.dragged = null;
      element.classList.remove("dragged");
    });
    element.addEventListener("dragover", (event) => {
      if (!this.dragged || this.dragged === line.key) return;
      event.preventDefault();
      element.classList.add("target");
    });
    element.addEventListener("dragleave", () => element.classList.remove("target"));
    element.addEventListener("drop", (event) => {
      event.preventDefault();
      element.classList.remove("target");
      if (this.dragged && this.dragged !== line.key) this.actions.drop(this.dragged, line.key);
    });
  }
}

/**
 * Where its element is; the words of a track that begins above the view stay in it as long as any of its rows does.
 * @param {Line} line @param {number | undefined} stuck its height on the screen, of a heading that stays at the top
 * @param {number} scroll @param {number} top from where on lines can be seen
 */
export function place(line, stuck, scroll, top) {
  const isHeading = line.kind === "rank" || line.kind === "group";
  const down = isHeading ? 0 : Math.max(0, Math.min(top - line.y, line.height - WORDS));
  return { top: `${stuck === undefined ? line.y : scroll + stuck}px`, height: `${line.height}px`, paddingTop: down ? `${down + 2}px` : "" };
}

/** @param {Line} line */
function tipOf(line) {
  const events = line.events ? `${count(line.events)} events` : "";
  const move = line.kind === "track" || line.kind === "counter" ? "Drag to move, double-click to fold." : "";
  return [line.title, line.detail, events, move].filter(Boolean).join("\n");
}
