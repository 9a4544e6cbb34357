// One sentence on a run: how long a step takes, what the device does meanwhile, and what to change first.

import { duration, many, share, speedup } from "../../text/format.js";
import { inOrder, part } from "../../text/parts.js";

const WORTH = 0.05; // an idle part that takes less is not worth naming

/** @param {import("../../types").Report} report */
export function verdict(report) {
  const errors = report.problems.filter((problem) => problem.severity === "error");
  if (!report.breakdown.length) {
    return errors.length
      ? `Nothing can be said about the time: ${errors[0].title}.`
      : "The profile has no steps and no work that could be accounted for.";
  }
  const rest = change(report);
  return `${step(report)} ${raised(use(report))}${rest ? `: ${rest}` : ""}.`;
}

/** @param {import("../../types").Report} report */
function step(report) {
  return report.steps.sentence || "No steps were found, so this is about the whole recording.";
}

/** For the beginning of a sentence. @param {string} text */
function raised(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {import("../../types").Report} report */
function use(report) {
  const rows = inOrder(report.breakdown);
  const busy = rows.filter((row) => part(row.part).isBusy).reduce((sum, row) => sum + row.share, 0);
  const isHost = rows.some((row) => row.part === "host_compute");
  const worst = rows.find((row) => !part(row.part).isBusy);
  const who = isHost ? "the CPU computes" : "the device is busy";
  const told = busy > 0 || report.device.busy_share !== null ? `${who} ${share(Math.min(1, busy))} of the time` : "";
  if (!worst || worst.share < WORTH) return told || "what the device did was not recorded";
  const why = worst.part === "unexplained" ? "no event explains" : `${part(worst.part).title} ${part(worst.part).title.endsWith("s") ? "take" : "takes"}`;
  return `${told ? `${told} and ` : ""}${why} ${share(worst.share)}${told ? "" : " of the time"}`;
}

/** @param {import("../../types").Report} report */
function change(report) {
  const best = report.findings.find(
    (finding) => finding.class !== "advice" && finding.speedup.mid > 1.005 && finding.saves_ns_per_step > 0,
  );
  if (!best) return report.findings.length ? lowered(report.findings[0].title) : "nothing here is worth changing";
  return `${lowered(best.title)}, and fixing it gives a speed-up of ${speedup(best.speedup)}`;
}

/** For the middle of a sentence. @param {string} title */
function lowered(title) {
  return /^[A-Z][a-z]/.test(title) ? title.charAt(0).toLowerCase() + title.slice(1) : title;
}

/** The figures that people look for first: a label and its value each. @param {import("../../types").Report} report @returns {[string, string][]} */
export function headlines(report) {
  /** @type {[string, string][]} */
  const found = [];
  const { steps, device, breakdown } = report;
  const label =
    steps.source === "whole" ? "the whole recording"
    : steps.basis === "unprofiled" ? "a step without the profiler"
    : `mean of ${many(steps.count, "step")}, as recorded`;
  if (steps.basis_ns !== null) found.push([label, duration(steps.basis_ns)]);
  const busy = breakdown.filter((row) => part(row.part).isBusy).reduce((sum, row) => sum + row.share, 0);
  if (breakdown.some((row) => row.part === "compute")) found.push(["of the time the device is busy", share(busy)]);
  else if (breakdown.some((row) => row.part === "host_compute")) found.push(["of the time the CPU computes", share(busy)]);
  const worst = inOrder(breakdown).find((row) => !part(row.part).isBusy);
  if (worst && worst.share >= 0.01)
    found.push([
      worst.part === "unexplained" ? "of the time is unexplained" : `of the time goes to ${part(worst.part).title}`,
      share(worst.share),
    ]);
  if (device.mfu !== null) found.push(["model FLOPs utilisation", share(device.mfu)]);
  const first = report.findings[0];
  if (first && first.speedup.mid > 1 && first.class !== "advice")
    found.push(["speed-up by the first finding", speedup(first.speedup)]);
  return found;
}
