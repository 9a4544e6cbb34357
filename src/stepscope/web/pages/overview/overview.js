// The first page of a run: what is wrong with the capture, where the time goes, and what to change.

import { oneBar, partList, stepBars } from "../../ui/account.js";
import { fill, h } from "../../ui/dom.js";
import { label, words } from "../../text/evidence.js";
import { findings } from "./findings.js";
import { hang } from "./hang.js";
import { count, duration, format, framework, moment, share, shown, spans, times, version } from "../../text/format.js";
import { helpLink } from "../../shell/help.js";
import { empty, problem } from "../../shell/notice.js";
import { heading } from "../../ui/pieces.js";
import { headlines, verdict } from "./verdict.js";

const COVERED = /** @type {const} */ (["runtime", "device_time", "memory", "shapes", "stacks", "step_time"]);

/** @type {import("../../types").Page} */
export const page = { name: "overview", title: "Overview", render };

/** @param {HTMLElement} root @param {import("../../types").Context} context */
async function render(root, context) {
  const report = await context.report();
  if (report.hang.kind !== null) {
    fill(
      root,
      header(report),
      problems(report),
      h("p", { class: "verdict" }, verdict(report)),
      hang(report),
      heading("About these dumps", "formats/flight_recorder"),
      h("div", { class: "panels" }, environment(report)),
    );
    return;
  }
  fill(
    root,
    header(report),
    problems(report),
    h("p", { class: "verdict" }, verdict(report)),
    h(
      "div",
      { class: "cards" },
      headlines(report).map(([label, value]) => h("div", { class: "card" }, h("b", {}, value), h("span", {}, label))),
    ),
    report.breakdown.length
      ? oneBar(report, context)
      : empty("No account.", "The profile has no steps and no work on a device or in ops."),
    heading("What to change", "report/findings"),
    findings(report, context),
    report.steps.rows.length ? stepBars(report, context, { rank: context.rank }) : null,
    report.breakdown.length ? [heading("The account by part", "report/account"), partList(report, context)] : null,
    heading("About this run", "report/index"),
    h("div", { class: "panels" }, device(report), precision(report), coverage(report), environment(report)),
  );
}

/** @param {import("../../types").Report} report */
function header(report) {
  const { profile } = report;
  const devices = profile.devices
    .map(inUse)
    .join(", ");
  const about = [
    framework(profile.framework),
    devices || (report.hang.kind === null ? "no device" : "flight-recorder dumps"),
    profile.ranks.length > 1 || (profile.world_size ?? 1) > 1
      ? `rank${profile.ranks.length > 1 ? "s" : ""} ${spans(profile.ranks)}${profile.world_size ? ` of ${profile.world_size}` : ""}`
      : "",
    profile.hosts.slice(0, 3).join(", "),
    profile.recorded_unix_ns ? moment(profile.recorded_unix_ns) : "",
    `${count(profile.events)} events`,
  ];
  return [
    h("h1", {}, profile.name || profile.path),
    h(
      "p",
      { class: "sub" },
      about.filter(Boolean).map((each) => h("span", {}, each)),
    ),
  ];
}

/** How many of which; of a machine with more of them than were used, those that were. @param {import("../../types").Report["profile"]["devices"][number]} device */
function inUse({ name: given, count: all = 1, used = 0 }) {
  const name = given.replace(/^\/job:.*\/device:(\w+):(\d+)$/, "$1 $2"); // as TensorFlow writes a device
  if (used && used < all) return `${name} (${used} of ${all} used)`;
  return all > 1 ? `${all} × ${name}` : name;
}

/** @param {import("../../types").Report} report */
function problems(report) {
  const write = (/** @type {import("../../types").Problem} */ each) =>
    problem(
      each.severity,
      `${each.title}${each.rank === null ? "" : ` (rank ${each.rank})`}`,
      [each.detail, each.cause],
      each.fix,
    );
  const told = report.problems.filter((each) => each.severity !== "info");
  const notes = report.problems.filter((each) => each.severity === "info");
  return [
    ...told.map(write),
    notes.length
      ? h(
          "details",
          {},
          h(
            "summary",
            {},
            `${told.length ? "" : "Nothing is wrong with the capture; "}${notes.length} note${notes.length > 1 ? "s" : ""}`,
          ),
          notes.map(write),
        )
      : told.length
        ? null
        : h("p", { class: "sub" }, "Nothing is wrong with the capture."),
  ];
}

/** @param {string} title @param {string} help @param {import("../../ui/dom.js").Content} content */
function panel(title, help, content) {
  return h("div", { class: "panel" }, h("h3", {}, title, helpLink(help, "how?")), content);
}

/** @param {string} label @param {number} value @param {string} [colour] */
function meter(label, value, colour = "accent") {
  return h(
    "div",
    { class: "meter" },
    h("span", {}, label),
    h("div", {}, h("i", { style: { width: `${100 * Math.min(1, value)}%`, background: `var(--${colour})` } })),
    h("span", { class: "n" }, share(value)),
  );
}

/** @param {import("../../types").Report} report */
function device(report) {
  const { device: found } = report;
  const meters = /** @type {[string, number | null][]} */ ([
    ["busy", found.busy_share],
    ["MFU", found.mfu],
    ["SM efficiency", found.sm_efficiency],
    ["occupancy", found.occupancy],
  ])
    .filter(([, value]) => value !== null)
    .map(([label, value]) => meter(label, value ?? 0));
  return panel(
    "Device",
    "report/device",
    meters.length
      ? meters
      : h(
          "p",
          { class: "sub" },
          "No work on a device was recorded: a run on the CPU, or a profile without device events.",
        ),
  );
}

/** @param {import("../../types").Report} report */
function precision(report) {
  const { shares, tensor_core_share, eligible_share } = report.precision;
  const rows = Object.entries(shares).sort((a, b) => b[1] - a[1]);
  const notes =
    tensor_core_share === null
      ? ""
      : `${share(tensor_core_share)} of compute time is on tensor cores${eligible_share === null ? "" : `, ${share(eligible_share)} is eligible`}`;
  return panel(
    "Precision",
    "report/precision",
    rows.length
      ? [
          rows.map(([name, value]) => meter(name === "none" ? "no arithmetic" : name, value, `q-${name}`)),
          h("p", { class: "note" }, notes ? `${notes}.` : ""),
        ]
      : h("p", { class: "sub" }, "No kernels were recorded, so their precision is not known."),
  );
}

/** @param {import("../../types").Report} report */
function coverage(report) {
  const found = report.coverage;
  const meters = COVERED.filter((what) => found[what] !== null).map((what) =>
    meter(what.replace("_", " "), found[what] ?? 0),
  );
  const gaps = found.gaps.map((gap) =>
    h(
      "li",
      {},
      h("b", {}, `${gap.what.replaceAll("_", " ")}, ${share(gap.share)} missing: `),
      gap.reason,
      gap.fix ? ` → ${gap.fix}` : "",
    ),
  );
  return panel("Coverage", "report/coverage", [
    meters,
    gaps.length
      ? h(
          "details",
          {},
          h("summary", {}, "what is missing, and why"),
          h("ul", { style: { paddingLeft: "18px", margin: "6px 0 0" } }, gaps),
        )
      : null,
  ]);
}

/** @param {import("../../types").Report["steps"]} steps */
function stepsFound(steps) {
  if (steps.source === "whole") return "none: the whole recording";
  return `${count(steps.count)}, ${steps.source === "inferred" ? "inferred" : `marked by ${steps.name ?? steps.source}`}`;
}

/** @param {import("../../types").Report} report */
function environment(report) {
  const { profile, steps } = report;
  const options = Object.entries(profile.capture_options).map(
    ([name, value]) => `${label(name)}: ${typeof value === "boolean" ? shown(value, "flag") : words(name, value)}`,
  );
  const inflation =
    steps.inflation && steps.inflation >= 1.02
      ? `a step takes ${times(steps.inflation)} as long (${steps.inflation_source ?? "measured"})`
      : "";
  const facts = /** @type {[string, string][]} */ ([
    ["format", format(profile.format)],
    ["files", count(profile.files.length)],
    ["recorded", duration(profile.duration_ns)],
    ["steps", steps.count ? stepsFound(steps) : report.hang.kind === null ? "none found" : ""],
    ["with profiler", inflation],
    ["hosts", profile.hosts.join(", ")],
    ...Object.entries(profile.versions).map(([name, value]) => version(name, value)),
    ["recorded with", options.join(", ")],
  ]).filter(([, value]) => value);
  return panel(
    "Environment",
    "formats",
    h(
      "dl",
      {},
      facts.map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]),
    ),
  );
}
