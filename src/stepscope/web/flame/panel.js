// A flame graph with everything around it: views, search, legend, and what the selected box says and leads to.

import { arrange, fill, h } from "../ui/dom.js";
import { choice } from "../ui/pieces.js";
import { count, many, share } from "../text/format.js";
import { clipped, shortName } from "../text/names.js";
import { follow } from "../shell/place.js";
import { FlameGraph } from "./graph.js";
import { layOut, layOutOrder, layOutSandwich } from "./layout.js";
import { handleOf } from "./handles.js";
import { hitsAcross, hitsOf, wanted } from "./search.js";
import { addressOf, inverted, nodeAt, sandwich } from "./tree.js";

/** @typedef {import("./tree.js").Node} Node */
/** @typedef {import("./layout.js").Box} Box */
/** @typedef {import("./handles.js").View} View */
/** @typedef {{ names: string[], columns: string[], boxes: any[][], whole: number, shown: [number, number], left_out: number, threads_left_out: number }} Order */
/**
 * What is shown of it; the address has the same.
 * @typedef {object} State
 * @property {"heavy" | "time"} order
 * @property {boolean} inverted
 * @property {string | null} sandwich  a function
 * @property {string} colour
 * @property {string} find
 * @property {string} zoom  the address of a node, or a part of the axis: LOW-HIGH
 *
 * @typedef {object} Options
 * @property {Node | null} root
 * @property {number} hidden  nodes that the server left out
 * @property {string} note  what width is
 * @property {boolean} isStack
 * @property {((part: [number, number] | null, pixels: number) => Promise<Order>) | null} ask  boxes in time order
 * @property {State} state
 * @property {(state: State) => void} onState
 * @property {[string, string][]} colours  what colours may mean
 * @property {(by: string, nodes: Node[] | null) => () => import("./colours.js").Paint} paint
 * @property {(node: Node, view: View, whole: number) => string} words  what a box says below its name
 * @property {(handle: import("./handles.js").Handle, node: Node) => string | null} link
 */

const LONGEST = 2000;
const KEYS = "Arrow keys go from box to box, Enter zooms in, Escape or Backspace out; / searches, n goes to the next hit, i inverts, s shows the callers and callees, t the order of time, e opens the events.";

/** @param {Options} options */
export function flamePanel(options) {
  const panel = new Panel(options);
  /** @type {any} */ (window).stepscopeFlame = panel;
  return panel.element;
}

class Panel {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.state = options.state;
    /** @type {Order | null} */
    this.answer = null;
    /** @type {import("./layout.js").Picture | null} */
    this.inOrder = null;
    this.asked = 0;
    /** @type {{ callers: Node, callees: Node } | null} */
    this.around = null;
    /** @type {Node | null} */
    this.top = null;
    /** @type {Node | null} */
    this.zoom = null;
    /** Parts of the axis that one has zoomed in from. @type {string[]} */
    this.outer = [];
    /** Colours, and what they were made for. @type {{ by: string, of: any, make: () => import("./colours.js").Paint } | null} */
    this.painted = null;
    this.find = wanted(this.state.find);
    this.bar = h("div", { class: "row fg-bar" });
    this.hits = h("span", { class: "sub", role: "status" });
    this.legend = h("ul", { class: "legend fg-legend", "aria-label": "colours" });
    this.note = h("p", { class: "note" });
    this.told = h("div", { class: "fg-told" });
    this.live = h("p", { class: "visually-hidden", "aria-live": "polite" });
    this.search = h("input", {
      type: "search",
      placeholder: "search (regular expression)",
      "aria-label": "search names, by words or a regular expression",
      value: this.state.find,
      oninput: () => this.change({ find: this.search.value }),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.searchKey(event),
    });
    this.graph = new FlameGraph({
      picture: (pixels) => this.picture(pixels),
      paint: () => this.paint(),
      find: () => this.find && this.find.test,
      words: (box) => this.words(box),
      onSelect: (box) => this.tell(box),
      onEnter: (box) => this.enter(box),
      onKey: (event) => this.key(event),
    });
    this.element = h("div", { class: "fg-panel" }, this.bar, this.legend, this.graph.element, this.told, this.live, this.note);
    this.prepare();
  }

  get isTime() {
    return this.state.order === "time" && this.options.ask !== null;
  }

  /** What is drawn: of the whole, inverted, or around a function. */
  prepare() {
    const { root } = this.options;
    const { sandwich: name } = this.state;
    this.around = root && name !== null && !this.isTime ? sandwich(root, name) : null;
    this.top = root && this.state.inverted && !this.around && !this.isTime ? inverted(root) : root;
    this.zoom = this.readZoom();
    this.controls();
    this.tellHits();
    if (this.isTime) void this.askOrder();
    else this.graph.update();
    this.graph.element.setAttribute("aria-label", `Flame graph. ${KEYS}`);
    this.tellNote();
    this.tell(this.graph.at);
  }

  /** @returns {Node | null} */
  readZoom() {
    const { zoom } = this.state;
    if (!zoom || this.isTime) return null;
    if (this.around) return nodeAt(zoom.startsWith("u") ? this.around.callers : this.around.callees, zoom.slice(1));
    return this.top ? nodeAt(this.top, zoom) : null;
  }

  /** @param {Node} node */
  writeZoom(node) {
    const side = this.around ? (this.viewOf(node) === "callers" ? "u" : "d") : "";
    return `${side}${addressOf(node)}`;
  }

  /** Which picture a node is in. @param {Node} node @returns {View} */
  viewOf(node) {
    if (this.isTime) return "order";
    if (!this.around) return this.state.inverted ? "inverted" : "down";
    const base = node.path[0]?.above ?? node;
    return base === this.around.callers ? "callers" : "callees";
  }

  /** @param {Partial<State>} changes */
  change(changes) {
    const before = this.state;
    this.state = { ...before, ...changes };
    this.options.onState(this.state);
    this.find = wanted(this.state.find);
    const isOther = ["order", "inverted", "sandwich"].some((key) => /** @type {any} */ (before)[key] !== /** @type {any} */ (this.state)[key]);
    if (isOther) {
      this.graph.select(null);
      this.prepare();
    } else if (changes.zoom !== undefined) {
      this.zoom = this.readZoom();
      if (this.isTime) void this.askOrder();
      else this.graph.update();
      this.controls();
    } else {
      this.tellHits();
      this.graph.repaint();
      this.drawLegend();
    }
  }

  controls() {
    const { state, options } = this;
    const button = (/** @type {string} */ words, /** @type {boolean} */ isOn, /** @type {() => void} */ act, /** @type {string} */ tip) =>
      h("button", { type: "button", "aria-pressed": isOn, "data-tip": tip, onclick: act }, words);
    const order = options.ask
      ? choice("order", [["heavy", "left-heavy"], ["time", "time order"]], state.order, (value) => this.change({ order: /** @type {State["order"]} */ (value), zoom: "", sandwich: null }))
      : null;
    const isTree = !this.isTime;
    const invert = isTree && !this.around ? button("inverted", state.inverted, () => this.invert(), "Callees on top, their callers below (i)") : null;
    const middle = this.around && state.sandwich !== null ? button(`around ${clipped(shortName(state.sandwich), 40)} ✕`, true, () => this.change({ sandwich: null, zoom: "" }), "Back to the whole graph (Esc)") : null;
    const out = state.zoom ? button("zoom out", false, () => this.out(), "Esc or Backspace") : null;
    const colours = options.colours.length > 1 ? choice("colours", options.colours, state.colour, (value) => this.change({ colour: value })) : null;
    const kept = [order, invert, middle, out, colours].filter((each) => each !== null);
    const focused = this.bar.contains(document.activeElement) && document.activeElement !== this.search ? document.activeElement?.textContent : null;
    arrange(this.bar, [...kept, this.search, this.hits]);
    if (focused) ([...this.bar.querySelectorAll("button")].find((each) => each.textContent === focused) ?? this.graph.element).focus();
    this.drawLegend();
  }

  paint() {
    const { colour: by } = this.state;
    const of = this.isTime ? this.inOrder : null;
    if (this.painted?.by !== by || this.painted.of !== of)
      this.painted = { by, of, make: this.options.paint(by, of && of.boxes.map((box) => box.node)) };
    return this.painted.make();
  }

  drawLegend() {
    const { legend } = this.paint();
    fill(this.legend, legend.map(([title, fillColour]) => h("li", {}, h("i", { class: "swatch", style: { background: fillColour } }), title)));
  }

  /** @param {number} pixels */
  picture(pixels) {
    if (this.isTime) return this.inOrder;
    if (this.around) return layOutSandwich(this.around, this.zoom, pixels);
    return this.top && layOut(this.top, this.zoom, pixels);
  }

  async askOrder() {
    const { ask } = this.options;
    if (!ask) return;
    const mine = (this.asked += 1);
    const [low, high] = this.state.zoom.split("-").map(Number);
    const part = high > low ? /** @type {[number, number]} */ ([low, high]) : null;
    this.element.setAttribute("aria-busy", "true");
    const answer = await ask(part, Math.max(200, this.graph.element.clientWidth || innerWidth)).finally(() => {
      if (mine === this.asked) this.element.setAttribute("aria-busy", "false");
    });
    if (mine !== this.asked) return;
    this.answer = answer;
    this.inOrder = layOutOrder(answer);
    this.graph.at = null;
    this.graph.update();
    this.drawLegend();
    this.tellHits();
    this.tellNote();
    this.tell(null);
  }

  /** @param {Box} box */
  enter(box) {
    if (this.isTime) this.enterOrder(box);
    else if (this.zoom === box.node || box.node.above === null) this.out();
    else this.change({ zoom: this.writeZoom(box.node) });
  }

  /** @param {Box} box */
  enterOrder(box) {
    const { answer } = this;
    if (!answer) return;
    const [low, high] = answer.shown;
    const ends = [box.x0, box.x1].map((x) => Math.round(low + x * (high - low)));
    if (ends[0] <= low && ends[1] >= high) this.out();
    else if (ends[1] - ends[0] >= 1) {
      this.outer.push(this.state.zoom);
      this.change({ zoom: `${ends[0]}-${ends[1]}` });
    }
  }

  /** To what is around; then out of the sandwich. */
  out() {
    if (this.isTime) this.change({ zoom: this.outer.pop() ?? "" });
    else if (this.zoom) {
      const { above } = this.zoom;
      const left = this.zoom;
      this.change({ zoom: above && above.above ? this.writeZoom(above) : "" });
      this.graph.select(this.graph.boxes.find((box) => box.node === left) ?? this.graph.at);
    } else if (this.state.sandwich !== null) this.change({ sandwich: null });
    else if (this.state.find) this.clear();
    else this.graph.select(null);
  }

  clear() {
    this.search.value = "";
    this.change({ find: "" });
  }

  invert() {
    if (!this.isTime) this.change({ inverted: !this.state.inverted, zoom: "", sandwich: null });
  }

  /** @param {Box | null} box */
  showAround(box) {
    if (box && !this.isTime && !["all", "rest"].includes(box.node.kind)) this.change({ sandwich: box.node.name, zoom: "" });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { at } = this.graph;
    const acts = /** @type {Record<string, () => void>} */ ({
      Escape: () => this.out(),
      Backspace: () => this.out(),
      "/": () => this.search.focus(),
      i: () => this.invert(),
      s: () => this.showAround(at),
      t: () => { if (this.options.ask) this.change({ order: this.isTime ? "heavy" : "time", zoom: "", sandwich: null }); },
      e: () => this.open(at),
      n: () => this.nextHit(1),
      N: () => this.nextHit(-1),
    });
    const act = Object.hasOwn(acts, event.key) ? acts[event.key] : null;
    if (!act || (event.key === "Escape" && !at && !this.state.zoom && !this.state.find && this.state.sandwich === null)) return false;
    act();
    return true;
  }

  /** @param {KeyboardEvent} event */
  searchKey(event) {
    if (event.key === "Enter") this.nextHit(1);
    else if (event.key === "Escape") this.clear();
    else return;
    event.preventDefault();
    this.graph.element.focus();
  }

  /** @param {number} by */
  nextHit(by) {
    const { find, graph } = this;
    if (!find) return;
    const hits = graph.boxes.filter((box) => !box.more && !box.isAround && find.test(box.node.name));
    const at = graph.at ? hits.findIndex((box) => box.node === graph.at?.node) : -1;
    if (hits.length) graph.select(hits[(at + by + hits.length) % hits.length] ?? hits[0]);
  }

  /** @param {Box | null} box */
  address(box) {
    const handle = box && handleOf(box.node, this.viewOf(box.node), this.options.isStack);
    return handle && box ? this.options.link(handle, box.node) : null;
  }

  /** @param {Box | null} box */
  open(box) {
    const address = this.address(box);
    if (address) follow(address);
  }

  get whole() {
    return this.isTime ? this.answer?.whole ?? 0 : this.options.root?.total ?? 0;
  }

  /** @param {Box} box */
  words(box) {
    return `${clipped(box.node.name, LONGEST)}\n${this.options.words(box.node, this.viewOf(box.node), this.whole)}`;
  }

  /** What the selected box says, and where it leads. @param {Box | null} box */
  tell(box) {
    this.live.textContent = box ? `${clipped(shortName(box.node.name), 200)}: ${this.options.words(box.node, this.viewOf(box.node), this.whole)}` : "";
    if (!box) {
      fill(this.told, h("p", { class: "sub" }, "Click a box to zoom in, or go through the boxes with the arrow keys."));
      return;
    }
    const address = this.address(box);
    fill(
      this.told,
      h("p", {}, h("b", { class: "place" }, clipped(shortName(box.node.name), 300)), h("br"), this.options.words(box.node, this.viewOf(box.node), this.whole)),
      h(
        "p",
        { class: "row" },
        address ? h("a", { href: address, class: "more" }, "its events in the trace (e)") : null,
        this.isTime || ["all", "rest"].includes(box.node.kind) ? null : h("button", { type: "button", onclick: () => this.showAround(box) }, "callers and callees (s)"),
      ),
    );
  }

  tellHits() {
    const { find } = this;
    if (!find) {
      this.hits.textContent = "";
      return;
    }
    const found = this.isTime ? hitsAcross(this.inOrder?.boxes ?? [], find) : this.options.root ? hitsOf(this.options.root, find) : null;
    const kind = find.isPattern ? "" : " (not a regular expression: searched for as it is)";
    this.hits.textContent = found ? `${many(found.names, "name")} in ${count(found.boxes)} boxes, ${share(found.share)} of all${kind}` : "";
  }

  tellNote() {
    const left = this.isTime ? this.answer?.left_out ?? 0 : this.options.hidden;
    const threads = this.isTime ? this.answer?.threads_left_out ?? 0 : 0;
    this.note.textContent = [
      this.isTime ? "Neighbours that are narrower than a pixel are one box; zoom in to see them one by one." : this.options.note,
      left ? `${count(left)} of the smallest boxes are left out.` : "",
      threads ? `${many(threads, "thread")} that did less ${threads === 1 ? "is" : "are"} left out.` : "",
    ].filter(Boolean).join(" ");
  }
}
