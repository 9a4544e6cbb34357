// A flame graph with everything around it: views, search, legend, and what the selected box says and leads to.

import { fill, h } from "../ui/dom.js";
import { clipped } from "../text/names.js";
import { isLeft } from "../shell/api.js";
import { failure } from "../shell/notice.js";
import { follow } from "../shell/place.js";
import { FlameGraph } from "./graph.js";
import { KEYS, pressed, pressedInSearch } from "./keys.js";
import { layOut, layOutOrder, layOutSandwich } from "./layout.js";
import { handleOf } from "./handles.js";
import { wanted } from "./search.js";
import { drawBar, describeBox, showHits, showNote } from "./words.js";
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
 * @property {(node: Node | null) => void} [onSelect]  another box is selected, or none
 */

const LONGEST = 2000;
const LEAST_PIXELS = 200;

/** @param {Options} options */
export function flamePanel(options) {
  const panel = new Panel(options);
  /** @type {any} */ (window).stepscopeFlame = panel;
  return panel.element;
}

export class Panel {
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
    this.about = h("div", { class: "fg-about" });
    this.live = h("p", { class: "visually-hidden", "aria-live": "polite" });
    this.search = h("input", {
      type: "search",
      placeholder: "search (regular expression)",
      "aria-label": "search names, by words or a regular expression",
      value: this.state.find,
      oninput: () => this.change({ find: this.search.value }),
      onkeydown: (/** @type {KeyboardEvent} */ event) => pressedInSearch(this, event),
    });
    this.graph = new FlameGraph({
      picture: (pixels) => this.picture(pixels),
      paint: () => this.paint(),
      find: () => this.find && this.find.test,
      words: (box) => this.words(box),
      onSelect: (box) => describeBox(this, box),
      onEnter: (box) => this.enter(box),
      onKey: (event) => pressed(this, event),
    });
    this.element = h("div", { class: "fg-panel" }, this.bar, this.legend, this.graph.element, this.about, this.live, this.note);
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
    showHits(this);
    if (this.isTime) void this.askOrder();
    else this.graph.update();
    this.graph.element.setAttribute("aria-label", `Flame graph. ${KEYS}`);
    showNote(this);
    describeBox(this, this.graph.at);
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
      showHits(this);
      this.graph.repaint();
      this.drawLegend();
    }
  }

  controls() {
    drawBar(this);
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
    try {
      const answer = await ask(part, Math.max(LEAST_PIXELS, this.graph.element.clientWidth || innerWidth));
      if (mine === this.asked) this.showOrder(answer);
    } catch (error) {
      if (!isLeft(error) && mine === this.asked) fill(this.about, failure(error));
    }
    if (mine === this.asked) this.element.setAttribute("aria-busy", "false");
  }

  /** @param {Order} answer */
  showOrder(answer) {
    this.answer = answer;
    this.inOrder = layOutOrder(answer);
    this.graph.at = null;
    this.graph.update();
    this.drawLegend();
    showHits(this);
    showNote(this);
    describeBox(this, null);
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

  /** To the order of time, and back. */
  turn() {
    if (this.options.ask) this.change({ order: this.isTime ? "heavy" : "time", zoom: "", sandwich: null });
  }

  invert() {
    if (!this.isTime) this.change({ inverted: !this.state.inverted, zoom: "", sandwich: null });
  }

  /** @param {Box | null} box */
  showAround(box) {
    if (box && !this.isTime && !["all", "rest"].includes(box.node.kind)) this.change({ sandwich: box.node.name, zoom: "" });
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
}
