// What a run comes down to: the report's own sentence, and the figures that people look for first.

import { chargedDevice } from "../../text/devices.js";
import { bounds, duration, likeliest, many, share } from "../../text/format.js";
import { inOrder, part } from "../../text/parts.js";

/** The sentence that opens every rendering of the report. @param {import("../../types").Report} report */
export function verdict(report) {
  return report.sentence || report.steps.sentence || "No steps were found, so this is about the whole recording.";
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
  if (breakdown.some((row) => row.part === "compute")) found.push([`${chargedDevice(report) || "device"} busy`, share(busy)]);
  else if (breakdown.some((row) => row.part === "host_compute")) found.push(["CPU computes", share(busy)]);
  const worst = inOrder(breakdown).find((row) => !part(row.part).isBusy);
  if (worst && worst.share >= 0.01)
    found.push([
      worst.part === "unexplained" ? "unexplained" : `idle: ${part(worst.part).title}`,
      share(worst.share),
    ]);
  if (device.mfu !== null) found.push(["model FLOPs utilisation (MFU)", share(device.mfu)]);
  const first = report.findings[0];
  if (first && first.speedup.mid > 1 && first.class !== "advice") {
    const likely = likeliest(first.speedup);
    found.push([`speed-up of the top finding${likely ? `, most likely ${likely}` : ""}`, bounds(first.speedup)]);
  }
  return found;
}
