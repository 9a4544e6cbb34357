// Keys: which does what. Letters move as long as they are held.

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {import("./search.js").Search} Search */
/** @typedef {import("./evidence.js").Evidence} Evidence */

const ZOOM_A_SECOND = 3.2; // e-folds
const PAN_A_SECOND = 1.1; // widths of the view
/** @type {Record<string, [number, number]>} */
const HELD = { w: [-1, 0], s: [1, 0], a: [0, -1], d: [0, 1], arrowleft: [0, -1], arrowright: [0, 1], "+": [-1, 0], "=": [-1, 0], "-": [1, 0] };

const LEADING = new Set([",", ".", "[", "]", "{", "}", "c", "n", "p", "f"]); // go from slice to slice

/** What the keys do; the help shows the same. */
export const HELP = /** @type {[string, [string, string][]][]} */ ([
  ["Move", [
    ["W S", "zoom in and out at the pointer"], ["A D", "pan left and right, also ← →"], ["+ −", "zoom in and out"], ["↑ ↓", "scroll the tracks"],
    ["0", "the whole trace"], ["F", "centre the selection, again to fill the view with it"],
  ]],
  ["Mouse", [
    ["click", "select a slice"], ["double-click", "fill the view with it"], ["drag", "select a range and its tracks"], ["Shift+drag", "pan"],
    ["Ctrl+wheel", "zoom"], ["wheel", "scroll the tracks"], ["Shift+wheel", "pan"],
  ]],
  ["Select", [
    [", .", "slice before and after in the row"], ["[ ]", "follow links back and forth"], ["{ }", "to what it waited for, and to what waited for it"], ["C", "follow the critical path from the selection, Shift+C back"], ["R", "from the slice to its range"], ["Ctrl+A", "everything in view"],
    ["M", "mark the selection until the next mark"], ["Shift+M", "mark it for good"], ["Q", "show or hide the details"], ["Esc", "clear the selection"],
  ]],
  ["Find", [["/", "search the whole trace: a part of a name, a pattern such as /gemm|conv/, dur>5ms, stream=7, arg:pinned"], ["Enter", "the next hit"], ["Shift+Enter", "the hit before"], ["N P", "the next hit and the one before, from anywhere"], ["?", "these keys"]]],
  ["Events behind a figure", [["N P", "the next event of the list, and the one before"], ["Esc", "back to the page that one came from"]]],
]);

/** @param {KeyboardEvent} event */
function isTyping(event) {
  const target = event.target;
  return target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);
}

/** Listens to keys while the viewer is on the page. */
export class Keys {
  /** @param {Timeline} timeline @param {Selection} selection @param {Search} search @param {Evidence} evidence @param {() => void} help */
  constructor(timeline, selection, search, evidence, help) {
    this.timeline = timeline;
    this.selection = selection;
    this.search = search;
    this.evidence = evidence;
    this.help = help;
    /** @type {Map<string, string>} what each key that is down means; by its place, as + may go up as = when Shift went first */
    this.held = new Map();
    this.last = 0;
    this.pointer = 0.5;
    this.isLeading = false; // the selection was moved by a key: its tip is shown as if the pointer were there
    const down = (/** @type {KeyboardEvent} */ event) => this.down(event);
    const up = (/** @type {KeyboardEvent} */ event) => this.held.delete(event.code);
    const clear = () => this.held.clear();
    document.addEventListener("keydown", down);
    document.addEventListener("keyup", up);
    window.addEventListener("blur", clear);
    this.stop = () => {
      document.removeEventListener("keydown", down);
      document.removeEventListener("keyup", up);
      window.removeEventListener("blur", clear);
    };
    timeline.beforeFrame.push(() => this.glide());
  }

  /** Moves a little while keys are held. */
  glide() {
    const now = performance.now();
    const seconds = Math.min(0.05, (now - this.last) / 1000);
    this.last = now;
    if (!this.held.size) return;
    let zoom = 0;
    let pan = 0;
    for (const key of this.held.values()) {
      zoom += HELD[key]?.[0] ?? 0;
      pan += HELD[key]?.[1] ?? 0;
    }
    const { viewport } = this.timeline;
    if (zoom) viewport.zoom(Math.exp(zoom * ZOOM_A_SECOND * seconds), this.pointer * viewport.width);
    if (pan) viewport.pan(pan * PAN_A_SECOND * seconds * viewport.width);
    this.timeline.onChange();
    this.timeline.invalidate();
  }

  /** @param {KeyboardEvent} event */
  down(event) {
    if (document.querySelector("dialog[open]")) return;
    if (isTyping(event)) return;
    const isCommand = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if (isCommand && key === "a") this.selection.selectAll();
    else if (isCommand || event.altKey) return;
    else if (HELD[key]) this.hold(event.code, key);
    else if (!this.act(event.key, event.shiftKey)) return;
    event.preventDefault();
  }

  /** @param {string} code @param {string} key */
  hold(code, key) {
    if (!this.held.size) this.last = performance.now() - 16;
    this.held.set(code, key);
    this.timeline.invalidate();
  }

  /** @param {string} key @param {boolean} shift @returns {boolean} whether the key means anything */
  act(key, shift) {
    const { timeline, selection, search, evidence } = this;
    /** @type {Record<string, () => void>} */
    const actions = {
      f: () => selection.focus(),
      m: () => selection.mark(shift),
      r: () => selection.toRange(),
      q: () => selection.toggleDrawer(),
      ",": () => selection.step(-1),
      ".": () => selection.step(1),
      c: () => selection.alongPath(shift ? -1 : 1),
      "[": () => selection.follow("from"),
      "]": () => selection.follow("to"),
      "{": () => selection.followWait("from"),
      "}": () => selection.followWait("to"),
      0: () => { timeline.viewport.reset(); timeline.onChange(); timeline.invalidate(); },
      "/": () => search.open(),
      "?": () => this.help(),
      n: () => (evidence.isOpen ? evidence.step(1) : search.go(1)),
      p: () => (evidence.isOpen ? evidence.step(-1) : search.go(-1)),
      escape: () => (evidence.isOpen && evidence.isAtRest ? evidence.back() : selection.clear()),
      arrowup: () => timeline.scrollTo(timeline.scroll - 54),
      arrowdown: () => timeline.scrollTo(timeline.scroll + 54),
      pageup: () => timeline.scrollTo(timeline.scroll - timeline.height * 0.9),
      pagedown: () => timeline.scrollTo(timeline.scroll + timeline.height * 0.9),
      home: () => timeline.scrollTo(0),
      end: () => timeline.scrollTo(timeline.linesHeight),
    };
    const action = actions[key.toLowerCase()];
    if (LEADING.has(key.toLowerCase())) this.isLeading = true;
    action?.();
    return action !== undefined;
  }
}
