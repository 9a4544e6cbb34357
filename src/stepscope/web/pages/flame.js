// Flame graphs of a rank: of all steps, of one, or of a range that was selected in the trace.

import { isLeft } from "../shell/api.js";
import { latest } from "../shell/latest.js";
import { empty, failure } from "../shell/notice.js";
import { fill, h } from "../ui/dom.js";
import { eventsLink } from "../ui/events.js";
import { choice, pageHead } from "../ui/pieces.js";
import { count, duration, share, size } from "../text/format.js";
import { paintBy } from "../flame/colours.js";
import { flamePanel } from "../flame/panel.js";
import { below, treeOf } from "../flame/tree.js";

/** @typedef {import("../types").Context} Context */
/** @typedef {import("../flame/panel.js").State} State */
/** @typedef {{ by: string, measure: string, step: string | null, from: string | null, to: string | null }} Wish */

const TIME = /^-?\d{1,19}$/;
const MEASURES = /** @type {[string, string][]} */ ([["host", "host time"], ["device", "device time"], ["memory", "allocated bytes"]]);
const COLOURS = /** @type {[string, string][]} */ ([["category", "category"], ["module", "module"]]);
const WHY = /** @type {Record<string, string>} */ ({
  host: "No host time of ops or threads was recorded here. Record the host too: ProfilerActivity.CPU in torch.profiler, host_tracer_level=2 in TensorFlow and JAX.",
  device: "No device time is linked to ops here: nothing ran on a device, or launches were not recorded.",
  memory: "No allocations were recorded here. Record them: profile_memory=True in torch.profiler.",
});

/** @type {import("../types").Page} */
export const page = { name: "flame", title: "Flame graph", render };

/** @param {HTMLElement} root @param {Context} context */
async function render(root, context) {
  const report = await context.report();
  const rank = context.rank ?? report.profile.ranks[0] ?? null;
  const room = h("div", {}, h("p", { class: "sub wait" }, "Loading …"));
  const of = h("div", { class: "row fg-of" });
  const only = latest();
  const wish = readWish(context, report);
  let isChosen = context.params.has("tree");
  const load = async () => {
    room.setAttribute("aria-busy", "true");
    try {
      let answer = await only(ask(context, wish, "flame", { by: wish.by }));
      if (!answer.nodes.length && !isChosen && wish.by === "scope") {
        wish.by = "stack";
        answer = await only(ask(context, wish, "flame", { by: wish.by }));
      }
      controls();
      fill(room, answer.nodes.length ? panel(context, wish, answer, rank) : empty("Nothing to draw.", WHY[wish.measure]));
    } catch (error) {
      if (isLeft(error)) return; // another question was asked, which ends the waiting
      fill(room, failure(error, load));
    }
    room.setAttribute("aria-busy", "false");
  };
  /** @param {Partial<Wish>} changes */
  const change = (changes) => {
    Object.assign(wish, changes);
    isChosen = isChosen || changes.by !== undefined;
    context.setParams({ tree: wish.by, measure: wish.measure, step: wish.step, from: wish.from, to: wish.to, zoom: null, sandwich: null });
    void load();
  };
  const controls = () => fill(of, choices(report, rank, wish, change));
  const whose = context.rank === null && report.profile.ranks.length > 1 ? h("p", { class: "sub" }, `Of rank ${rank}; choose another one in the header.`) : null;
  controls();
  fill(root, pageHead("Flame graph", "page/flame"), of, whose, room);
  await load();
}

/** @param {Context} context @param {import("../types").Report} report @returns {Wish} */
function readWish(context, report) {
  const { params } = context;
  const time = (/** @type {string} */ name) => (TIME.test(params.get(name) ?? "") ? params.get(name) : null);
  const [from, to] = [time("from"), time("to")];
  const isRange = from !== null && to !== null && BigInt(to) > BigInt(from);
  const step = /^\d{1,15}$/.test(params.get("step") ?? "") && !isRange ? params.get("step") : null;
  // Ops of compiled programs have no time on the host.
  const usual = report.ops.rows.length && !report.ops.rows.some((row) => row.host_total_ns) ? "device" : "host";
  return {
    by: params.get("tree") === "stack" ? "stack" : "scope",
    measure: MEASURES.some(([name]) => name === params.get("measure")) ? String(params.get("measure")) : usual,
    step,
    from: isRange ? from : null,
    to: isRange ? to : null,
  };
}

/** @param {Context} context @param {Wish} wish @param {string} path @param {Record<string, any>} query */
function ask(context, wish, path, query) {
  const { measure, step, from, to } = wish;
  return context.api.get(`api/runs/${context.run}/${path}`, { ...query, measure, step, from, to, rank: context.rank });
}

/** What the graph is of, and by what. @param {import("../types").Report} report @param {number | null} rank @param {Wish} wish @param {(changes: Partial<Wish>) => void} change */
function choices(report, rank, wish, change) {
  const steps = [...new Set(report.steps.rows.filter((row) => row.rank === rank).map((row) => String(row.step)))];
  const whole = /** @type {[string, string]} */ (["", "all steps"]);
  return [
    choice("by", [["scope", "module or scope"], ["stack", "call stack"]], wish.by, (value) => change({ by: value })),
    choice("width", MEASURES, wish.measure, (value) => change({ measure: value })),
    wish.from !== null && wish.to !== null
      ? h("button", { type: "button", "aria-pressed": true, "data-tip": "Back to all steps", onclick: () => change({ from: null, to: null }) }, `range of ${duration(Number(BigInt(wish.to) - BigInt(wish.from)))} ✕`)
      : steps.length > 1
        ? choice("of", [whole, ...steps.map((step) => /** @type {[string, string]} */ ([step, `step ${step}`]))], wish.step ?? "", (value) => change({ step: value || null }))
        : null,
  ];
}

/** @param {Context} context @param {Wish} wish @param {import("../flame/tree.js").Answer} answer @param {number | null} rank */
function panel(context, wish, answer, rank) {
  const root = treeOf(answer);
  const nodes = below(root);
  const write = wish.measure === "memory" ? size : duration;
  const about = { measure: wish.measure, ...(wish.step === null ? {} : { step: Number(wish.step) }), ...(wish.from === null ? {} : { from: wish.from, to: wish.to }) };
  return flamePanel({
    root,
    hidden: answer.left_out,
    note: "A box is as wide as what its calls cost; the costliest are on the left.",
    isStack: wish.by === "stack",
    ask: (part, pixels) => ask(context, wish, "flame/order", { low: part?.[0], high: part?.[1], pixels }),
    state: readState(context.params),
    onState: (state) => context.setParams(writeState(state), { replace: true }),
    colours: COLOURS,
    paint: (by, drawn) => paintBy(drawn ?? nodes, by),
    words: (node, view, whole) => words(node, view, whole, write),
    link: (handle) => eventsLink(context, handle.kind, handle.name, handle.kind === "event" ? null : { ...handle.facts, ...about }, rank),
  });
}

/** @param {import("../flame/tree.js").Node} node @param {import("../flame/handles.js").View} view @param {number} whole @param {(cost: number) => string} write */
function words(node, view, whole, write) {
  const all = `${write(node.total)} (${share(whole ? node.total / whole : 0)} of all)`;
  const own = (view === "down" || view === "callees") && node.own > 0 ? `, itself ${write(node.own)}` : "";
  return `${all}${own}${node.calls > 0 && node.kind !== "thread" ? `, ${count(node.calls)} ${node.calls === 1 ? "call" : "calls"}` : ""}`;
}

/** @param {URLSearchParams} params @returns {State} */
export function readState(params) {
  return {
    order: params.get("order") === "time" ? "time" : "heavy",
    inverted: params.get("inverted") === "1",
    sandwich: params.get("sandwich"),
    colour: params.get("colour") === "module" ? "module" : "category",
    find: (params.get("find") ?? "").slice(0, 300),
    zoom: /^[ud]?[\d.-]{0,400}$/.test(params.get("zoom") ?? "") ? (params.get("zoom") ?? "") : "",
  };
}

/** What is as it always is gets left out. @param {State} state @returns {import("../types").Changes} */
export function writeState(state) {
  return {
    order: state.order === "time" ? "time" : null,
    inverted: state.inverted ? 1 : null,
    sandwich: state.sandwich,
    colour: state.colour === "category" ? null : state.colour,
    find: state.find || null,
    zoom: state.zoom || null,
  };
}
