// How the devices were used: busy over time, the launch queue, and copies.

import { bar, ownRows } from "../../ui/account.js";
import { fill, h } from "../../ui/dom.js";
import { rowLinks } from "../../ui/events.js";
import { busyFigure } from "./busy.js";
import { chargedDevice, hasSeveralDevices, ofSteps } from "../../text/devices.js";
import { count, duration, share, significant } from "../../text/format.js";
import { helpLink } from "../../shell/help.js";
import { empty } from "../../shell/notice.js";
import { facts, heading, pageHead } from "../../ui/pieces.js";
import { inOrder, part } from "../../text/parts.js";
import { serverTable } from "../../ui/servertable.js";

/** @type {import("../../types").Page} */
export const page = { name: "device", title: "Device", render };

/** @param {HTMLElement} root @param {import("../../types").Context} context */
async function render(root, context) {
  const report = await context.report();
  const { device, breakdown } = report;
  if (device.busy_share === null && !device.timeline.length) {
    fill(
      root,
      pageHead("Device", "page/device"),
      empty(
        "No work on a device was recorded.",
        "The run used only the CPU, or the device was not recorded: ProfilerActivity.CUDA in torch.profiler; jax.profiler.trace and tf.profiler record it where CUPTI or the TPU driver may. The Doctor page says which.",
      ),
    );
    return;
  }
  const idle = inOrder(breakdown).filter((row) => !part(row.part).isBusy && row.ns > 0);
  fill(
    root,
    pageHead("Device", "page/device"),
    facts([
      [hasSeveralDevices(report) ? "busy, all devices" : "busy", written(device.busy_share)],
      ["MFU", written(device.mfu)],
      ["MFU at the peak of the precision in use", written(device.mfu_own_precision)],
      ["SM efficiency", written(device.sm_efficiency)],
      ["occupancy", written(device.occupancy)],
      ["streams", device.streams ? count(device.streams) : null],
      ["kernels at once", device.concurrency === null ? null : significant(device.concurrency)],
    ]),
    device.timeline.length
      ? busyFigure(report, context)
      : empty("No curve of the device's use.", "The profile has too little device work."),
    heading("Why the device was idle", "report/breakdown"),
    idle.length
      ? [h("p", { class: "sub" }, `Shares ${ofSteps(report)}${chargedDevice(report) ? `, ${chargedDevice(report)}` : ""}.`), bar(idle, Math.max(1, ownRows(report).length), context)]
      : h("p", { class: "sub" }, "It never was."),
    heading("The launch queue", "report/device"),
    queue(report),
    serverTable(context, {
      name: "copies",
      title: "Copies by direction",
      help: helpLink("report/device"),
      why: "No copies were recorded.",
      rowTip: "Enter or click: the copies in the trace",
      to: rowLinks(context, "copy", "direction"),
    }),
  );
}

/** @param {number | null} value */
function written(value) {
  return value === null ? null : share(value);
}

/** @param {import("../../types").Report} report */
function queue(report) {
  const found = report.device.queue;
  if (!found.launches)
    return empty("No launches were recorded.", "The profile has device work, but not the calls that launched it.");
  return facts([
    ["launches", count(found.launches)],
    ["launch to start, median", found.median_delay_ns === null ? null : duration(found.median_delay_ns)],
    ["launch to start, p90", found.p90_delay_ns === null ? null : duration(found.p90_delay_ns)],
    ["queued, median", found.median_depth === null ? null : significant(found.median_depth)],
    ["queued, at most", found.max_depth === null ? null : count(found.max_depth)],
    ["met an idle device", found.empty_share === null ? null : `${share(found.empty_share)} of launches`],
  ]);
}
