// What the list says about each run, in figures and words: no drawing here.

import { ago, duration, format, framework, moment, share, signed, size, speedup, UNKNOWN } from "../../text/format.js";
import { part } from "../../text/parts.js";
import { matches } from "../../shell/runlist.js";

const WORTH_NAMING = 0.05; // of the step
const FEWEST_FOR_TREND = 2;

/**
 * @typedef {import("../../types").Run} Run
 * @typedef {import("../../types").Board} Board
 * @typedef {import("../../types").RunFigures} Figures
 * @typedef {import("../../types").RunChange} Change
 *
 * @typedef {object} Line  keys of columns are its sort keys; null where not known
 * @property {string} id
 * @property {Run} run
 * @property {Figures | null} figures
 * @property {Change | null} change
 * @property {boolean} isWaiting  its figures are being computed
 * @property {string} job
 * @property {string} title
 * @property {number | null} step
 * @property {number | null} grown  share of the step of the run before
 * @property {string | null} verdict
 * @property {string | null} finding
 * @property {number | null} memory
 * @property {string | null} device
 * @property {string | null} framework
 * @property {number | null} when
 * @property {string | null} commit
 */

/** @param {Run[]} runs @param {Board} board @returns {Line[]} */
export function linesOf(runs, board) {
  const jobs = runs.map((run) => board.jobs[run.id] ?? run.name);
  const waiting = new Set(board.waiting);
  /** @type {Map<string, number>} */
  const runsOf = new Map();
  for (const job of jobs) runsOf.set(job, (runsOf.get(job) ?? 0) + 1);
  return runs.map((run, at) => {
    const figures = board.figures[run.id] ?? null;
    const change = board.changes[run.id] ?? null;
    const when = figures?.recorded_unix_ns ?? (run.modified_ns || null);
    const isAlone = runsOf.get(jobs[at]) === 1;
    return {
      id: run.id,
      run,
      figures,
      change,
      isWaiting: waiting.has(run.id),
      job: jobs[at],
      title: isAlone || when === null ? jobs[at] : `${jobs[at]}, ${moment(when).slice(0, 16)}`,
      step: figures?.step_ns ?? null,
      grown: change ? change.difference_ns / change.before_ns : null,
      verdict: figures ? verdictOf(figures) : null,
      finding: figures?.finding?.title ?? null,
      memory: figures?.peak_bytes ?? null,
      device: figures ? deviceOf(figures) : null,
      framework: figures?.framework ? framework(figures.framework) : null,
      when,
      commit: figures?.commit ?? null,
    };
  });
}

/** How busy the device is, and what it waits for most. @param {Figures} figures */
export function verdictOf(figures) {
  const idle = Object.entries(figures.parts)
    .filter(([name, value]) => !part(name).isBusy && value >= WORTH_NAMING)
    .sort((a, b) => b[1] - a[1])[0];
  const busy = figures.busy_share === null ? null : `busy ${share(figures.busy_share)}`;
  return [busy, idle ? `${part(idle[0]).title} ${share(idle[1])}` : null].filter(Boolean).join(", ") || null;
}

/** @param {Figures} figures */
function deviceOf(figures) {
  return [figures.devices || "CPU only", figures.ranks > 1 ? `${figures.ranks} ranks` : null].filter(Boolean).join(", ");
}

/** What the first finding promises; nothing where it is about memory or advice. @param {Figures} figures */
export function gainOf(figures) {
  const found = figures.finding;
  return found && !found.is_advice && found.high > 1 ? speedup(found) : "";
}

/** The change since the run before, with its noise. @param {Change} change */
export function changeWords(change) {
  return `${signed(change.difference_ns, duration)} ± ${duration(change.margin_ns)} since the run before (mean of the recorded steps)`;
}

/** @param {Change} change */
export function changeShown(change) {
  return change.verdict === "same" ? "±" : signed(change.difference_ns / change.before_ns, share);
}

/** What the cells do not say. @param {Line} line */
export function tipOf({ run }) {
  const files = `${run.files} ${run.files === 1 ? "file" : "files"}, ${size(run.bytes)}`;
  return [run.name, run.place, [run.format ? format(run.format) : "", files].filter(Boolean).join(", ")].join("\n");
}

/** Whether all words are in what is known of the run. @param {Line} line @param {string} words */
export function hasWords(line, words) {
  const known = [line.title, line.verdict, line.finding, line.figures?.finding?.code, line.device, line.framework, line.commit, line.change?.verdict];
  return words
    .split(/\s+/)
    .filter(Boolean)
    .every((word) => matches(line.run, word) || known.some((each) => each?.toLowerCase().includes(word.toLowerCase())));
}

/** Jobs of which several runs have a step time, the newest first, each in the order of time. @param {Line[]} lines */
export function trendsOf(lines) {
  /** @type {Map<string, Line[]>} */
  const jobs = new Map();
  for (const line of lines) if (line.step !== null && line.when !== null) jobs.set(line.job, [...(jobs.get(line.job) ?? []), line]);
  return [...jobs.values()]
    .filter((job) => job.length >= FEWEST_FOR_TREND)
    .map((job) => job.sort((a, b) => (a.when ?? 0) - (b.when ?? 0)))
    .sort((a, b) => (b[b.length - 1].when ?? 0) - (a[a.length - 1].when ?? 0));
}

/** Several runs beside each other: a row for each figure, a cell for each run. @param {Line[]} lines @returns {{ title: string, cells: string[] }[]} */
export function compared(lines) {
  const first = lines[0].step;
  const parts = [...new Set(lines.flatMap((line) => Object.entries(line.figures?.parts ?? {}).flatMap(([name, value]) => (value >= WORTH_NAMING ? [name] : []))))];
  /** @param {string} title @param {(figures: Figures, line: Line) => string | null | undefined} write */
  const row = (title, write) => ({ title, cells: lines.map((line) => (line.figures ? (write(line.figures, line) ?? UNKNOWN) : "…")) });
  const beside = (/** @type {Line} */ line) => (first && line.step && line !== lines[0] ? ` (${signed(line.step / first - 1, share)})` : "");
  return [
    row("step", (_, line) => (line.step === null ? null : duration(line.step) + beside(line))),
    row("p90 of steps", (figures) => (figures.p90_ns === null ? null : duration(figures.p90_ns))),
    row("noise of the mean step", (figures) => (figures.noise ? `± ${duration(figures.noise.error_ns)}` : null)),
    row("device busy", (figures) => (figures.busy_share === null ? null : share(figures.busy_share))),
    row("MFU", (figures) => (figures.mfu === null ? null : share(figures.mfu))),
    ...parts.map((name) => row(part(name).title, (figures) => share(figures.parts[name] ?? 0))),
    row("peak memory", (figures) => (figures.peak_bytes === null ? null : size(figures.peak_bytes))),
    row("first finding", (figures) => figures.finding?.title),
    row("what it promises", (figures) => gainOf(figures) || null),
    row("device", (_, line) => line.device),
    row("framework", (_, line) => line.framework),
    row("recorded", (_, line) => (line.when === null ? null : `${moment(line.when)} (${ago(line.when)})`)),
    row("commit", (_, line) => line.commit),
  ].filter((each) => each.cells.some((cell) => cell !== UNKNOWN));
}
