// A memory snapshot: how it went by kind, and of one moment the segments, the stacks that hold the memory, and what they hold.

import { isLeft } from "../../shell/api.js";
import { latest } from "../../shell/latest.js";
import { empty, failure } from "../../shell/notice.js";
import { colour } from "../../shell/theme.js";
import { integer } from "../../shell/route.js";
import { fill, h } from "../../ui/dom.js";
import { figure, sizeAxis, timeAxis } from "../../ui/figure.js";
import { heading } from "../../ui/pieces.js";
import { sourceOf } from "../../ui/source.js";
import { count, duration, many, share, size } from "../../text/format.js";
import { inked } from "../../flame/colours.js";
import { flamePanel } from "../../flame/panel.js";
import { treeOf } from "../../flame/tree.js";
import { readState, writeState } from "../flame.js";
import { KINDS, liveAt } from "./live.js";
import { SegmentMap } from "./map.js";

/** @typedef {import("../../types").Context} Context */
/** @typedef {import("../../types").MemoryDevice} MemoryDevice */
/** @typedef {import("./map.js").Piece} Piece */
/** @typedef {{ time_ns: number[], reserved: number[], kinds: Record<string, number[]>, failures: { time_ns: number, asked: number }[] }} Course */
/** @typedef {{ at: number | null, bytes: number, blocks: number, segments: import("./map.js").Segment[], segments_left_out: number, pieces: { columns: string[], rows: any[][] }, rows: any[], total: number }} Moment */

const HISTORY = "Record it: torch.cuda.memory._record_memory_history(max_entries=100_000) before the model is made, then _dump_snapshot(). stepscope run and stepscope.profile do so by themselves.";
const ONE_MOMENT = "A device memory profile of JAX is of one moment. Save several, and compare two with: stepscope diff BEFORE AFTER";
const STACKS = "Record them: torch.cuda.memory._record_memory_history(stacks=\"python\"), before the model is made.";
const SEGMENTS = "The file has a history alone, or what is live without addresses: torch.cuda.memory._dump_snapshot() writes the segments, too.";

/** What colour a kind has. @param {string} kind */
function tint(kind) {
  if (kind === "free") return colour("rule");
  return colour(KINDS[kind] ?? "p-unexplained");
}

/** @param {Moment["pieces"]} answer @returns {Piece[]} */
export function piecesOf(answer) {
  return answer.rows.map((row) => /** @type {Piece} */ (Object.fromEntries(answer.columns.map((name, at) => [name, row[at]]))));
}

/** What a block says in one line. @param {Piece} piece */
export function wordsOf(piece) {
  const what = piece.count > 1 ? `${count(piece.count)} blocks, ${piece.kind === "small" ? "of several kinds" : piece.kind}` : piece.kind;
  return [size(piece.bytes), what, piece.line, `0x${piece.address}`].filter(Boolean).join(" · ");
}

/** Everything about one device. @param {Context} context @param {MemoryDevice} found @param {string} name */
export function snapshotView(context, found, name, isJax = false) {
  return new View(context, found, name, isJax).element;
}

class View {
  /** @param {Context} context @param {MemoryDevice} found @param {string} name */
  constructor(context, found, name, isJax = false) {
    this.isJax = isJax;
    this.context = context;
    this.found = found;
    this.name = name;
    this.moment = integer(context.params, "at");
    this.only = latest();
    this.ofStack = latest();
    this.course = h("div", {}, h("p", { class: "sub wait" }, "Loading …"));
    this.map = h("div", {}, h("p", { class: "sub wait" }, "Loading …"));
    this.about = h("div", { class: "block-about", role: "status" });
    this.stacks = h("div", {});
    this.live = h("div", {});
    // Above the figure, whose words go when it loses the focus: a button below it would move away under the pointer.
    this.back = h("div", { class: "row" });
    this.element = h("div", { class: "snapshot" }, this.back, this.course, this.map, this.about, this.stacks, this.live);
    void this.loadCourse();
    void this.look();
  }

  /** @param {string} what @param {import("../../types").Query} query */
  ask(what, query = {}) {
    const { context, found } = this;
    return context.api.get(`api/runs/${context.run}/memory/snapshot/${what}`, { rank: context.rank ?? found.rank, device: found.device ?? 0, ...query });
  }

  async loadCourse() {
    try {
      /** @type {Course} */
      const answer = await this.ask("course");
      fill(this.course, answer.time_ns.length > 1 ? this.drawCourse(answer) : empty("No history.", this.isJax ? ONE_MOMENT : HISTORY));
    } catch (error) {
      if (!isLeft(error)) fill(this.course, failure(error, () => void this.loadCourse()));
    }
  }

  /** @param {Course} course */
  drawCourse(course) {
    const begin = course.time_ns[0];
    const { scale: time, unit: timeUnit } = timeAxis(course.time_ns[course.time_ns.length - 1] - begin);
    const { scale: bytes, unit } = sizeAxis(Math.max(...course.reserved, 1));
    const x = course.time_ns.map((ns) => (ns - begin) / time);
    this.begin = begin;
    const line = (/** @type {number} */ at, /** @type {string} */ tone, dash = "dot") => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: (at - begin) / time, x1: (at - begin) / time, line: { color: tone, width: 1.5, dash } });
    this.figure = figure({
      title: `Allocated by kind, ${this.name}`,
      unit: `${unit} over ${timeUnit}`,
      help: "page/memory",
      height: 300,
      note: `The highest and the last moment of each interval are drawn. Click, or press Enter on a mark, to see the segments, the stacks and what was live then.${course.failures.length ? ` The red line is the failed request for ${size(course.failures[course.failures.length - 1].asked)}.` : ""}`,
      draw: (tone) => ({
        data: [
          ...Object.entries(course.kinds).map(([kind, values]) => ({
            type: "scatter", mode: "lines", stackgroup: "kinds", name: kind, x, y: values.map((each) => each / bytes),
            line: { shape: "hv", width: 0.5, color: tone(KINDS[kind] ?? "p-unexplained") }, fillcolor: tone(KINDS[kind] ?? "p-unexplained"),
            hovertemplate: `${kind}: %{y:.2f} ${unit}<extra></extra>`,
          })),
          { type: "scatter", mode: "lines", name: "reserved", x, y: course.reserved.map((each) => each / bytes), line: { shape: "hv", width: 1.5, color: tone("ink"), dash: "dash" }, hovertemplate: `reserved: %{y:.2f} ${unit}<extra></extra>` },
        ],
        layout: {
          xaxis: { title: { text: `time since the first event [${timeUnit}]` } },
          yaxis: { title: { text: `memory [${unit}]` }, rangemode: "tozero" },
          showlegend: true,
          hovermode: "x",
          shapes: [...course.failures.map((each) => line(each.time_ns, tone("error"), "solid")), ...(this.moment === null ? [] : [line(this.moment, tone("ink"))])],
        },
      }),
      onClick: (event) => this.choose(Math.round(begin + event.points[0].x * time)),
    });
    return this.figure;
  }

  /** @param {number | null} moment */
  choose(moment) {
    this.moment = moment;
    this.context.setParams({ at: moment, block: null, zoom: null, device: this.name });
    void this.look();
    void this.figure?.redraw();
  }

  /** The segments, the stacks and what is live at the chosen moment. */
  async look() {
    const at = this.moment ?? undefined;
    this.map.setAttribute("aria-busy", "true");
    try {
      const block = this.context.params.get("block") ?? undefined;
      const [moment, flame] = await this.only(Promise.all([this.ask("moment", { at, block: /^[0-9a-f]{1,16}$/.test(block ?? "") ? block : undefined }), this.ask("flame", { at })]));
      fill(this.about);
      fill(this.back, this.moment === null ? null : h("button", { type: "button", onclick: () => this.choose(null) }, "Back to the snapshot"));
      fill(this.map, ...this.drawSegments(moment));
      fill(this.stacks, ...this.drawFlame(flame, moment));
      fill(this.live, ...liveAt(this.when("Live"), () => null, moment.rows, moment.bytes, moment.total));
    } catch (error) {
      if (isLeft(error)) return;
      fill(this.map, failure(error, () => void this.look()));
    }
    this.map.setAttribute("aria-busy", "false");
  }

  /** @param {string} what */
  when(what) {
    return this.moment === null ? `${what} when the snapshot was taken` : `${what} ${duration(this.moment - (this.begin ?? 0))} after the first event`;
  }

  /** @param {Moment} moment */
  drawSegments(moment) {
    const title = [heading(`${this.when("Segments")}: ${count(moment.segments.length)}`, "page/memory")];
    if (!moment.segments.length) return [...title, empty("No segments.", SEGMENTS)];
    const pieces = piecesOf(moment.pieces);
    const map = new SegmentMap({ segments: moment.segments, pieces, tint, words: wordsOf, onSelect: (piece) => this.select(piece) });
    /** @type {any} */ (window).stepscopeSegments = map;
    const kinds = [...new Set(pieces.map((piece) => piece.kind))];
    const gone = moment.segments.filter((each) => each.segment_kind === "given back").length;
    const chosen = pieces.find((piece) => piece.address === this.context.params.get("block"));
    if (chosen) map.select(chosen);
    return [
      ...title,
      h("ul", { class: "legend" }, kinds.map((kind) => h("li", {}, h("i", { class: "swatch", style: { background: `var(--${kind === "free" ? "rule" : (KINDS[kind] ?? "p-unexplained")})` } }), kind === "small" ? "several small ones" : kind))),
      map.element,
      h("p", { class: "note" }, [
        "Segments one after another by address, wrapped like text; all to the same scale. Click a block for its stack.",
        moment.segments_left_out ? `${many(moment.segments_left_out, "smaller segment")} left out.` : "",
        gone ? `${many(gone, "segment")} ${gone === 1 ? "has" : "have"} been given back since: only what was in use there is known.` : "",
      ].filter(Boolean).join(" ")),
    ];
  }

  /** @param {Piece} piece */
  select(piece) {
    if (this.context.params.get("block") !== piece.address) this.context.setParams({ block: piece.address, device: this.name }, { replace: true });
    const words = [
      h("b", { class: "place" }, wordsOf(piece)),
      h("br"),
      [
        piece.requested !== null && piece.requested !== piece.bytes && piece.kind !== "free" ? `${size(piece.requested)} were asked for` : "",
        piece.time_ns !== null && this.begin !== undefined ? `allocated ${duration(piece.time_ns - this.begin)} after the first event` : "",
        `in segment 0x${piece.segment}`,
      ].filter(Boolean).join(", "),
    ];
    void this.describe(words, piece.stack, piece.address, piece.kind === "free" ? "It is free." : piece.count > 1 ? "These are too many to be drawn one by one." : `Its stack was not recorded. ${STACKS}`);
  }

  /** The words of a block or a box, and its stack. @param {any[]} words @param {number | null} stack @param {string} block @param {string} without */
  async describe(words, stack, block, without) {
    const room = h("div", {}, stack === null ? h("p", { class: "sub" }, without) : h("p", { class: "sub wait" }, "Loading …"));
    this.about.dataset.block = block;
    this.about.dataset.stack = String(stack ?? "");
    fill(this.about, h("p", {}, ...words), room);
    if (stack === null) return;
    try {
      const answer = await this.ofStack(this.ask("stack", { number: stack }));
      fill(room, this.framesOf(answer.frames));
    } catch (error) {
      if (!isLeft(error)) fill(room, failure(error));
    }
  }

  /** @param {{ function: string | null, file: string | null, line: number | null }[]} frames */
  framesOf(frames) {
    return h(
      "details",
      { open: true },
      h("summary", {}, `Stack of ${many(frames.length, "frame")}, the innermost first`),
      h("ol", { class: "frames" }, frames.map((frame) => h("li", {}, sourceOf(this.context, { function: frame.function ?? "?", file: frame.file ?? "?", line: frame.line ?? 0 })))),
    );
  }

  /** @param {import("../../flame/tree.js").Answer} answer @param {Moment} moment */
  drawFlame(answer, moment) {
    const title = heading(`${this.when("Live")}, by stack`, "page/memory");
    if (!answer.nodes.length) return [title, empty("Nothing was live.", "No allocation that the history has was in use then.")];
    const isBare = answer.names.length === 1 && answer.names[0].startsWith("(");
    if (isBare) return [title, empty("No stacks.", STACKS)];
    const panel = flamePanel({
      root: treeOf(answer),
      hidden: answer.left_out,
      note: `A box is as wide as the bytes that calls below it hold; ${size(moment.bytes)} in all. Colours are kinds.`,
      isStack: true,
      ask: null,
      state: readState(this.context.params),
      onState: (state) => this.context.setParams(writeState(state), { replace: true }),
      colours: [["category", "kind"]],
      paint: () => () => ({ legend: [], of: (node) => inked(tint(node.kind === "all" || node.kind === "rest" ? "free" : node.kind)) }),
      words: (node, _view, whole) => `${size(node.total)} (${share(whole ? node.total / whole : 0)} of all), ${many(node.calls, "block")}, mostly ${node.kind}`,
      link: () => null,
      onSelect: (node) => {
        if (node && node.like !== null) void this.describe([h("b", { class: "place" }, `${size(node.total)} through ${node.name}`)], node.like, "", "");
      },
    });
    return [title, panel];
  }
}
