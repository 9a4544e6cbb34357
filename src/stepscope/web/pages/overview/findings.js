// What to change: the findings, each with its evidence, what it saves, and the page that shows more of it.

import { h } from "../../ui/dom.js";
import { eventsLink } from "../../ui/events.js";
import { sourceOf } from "../../ui/source.js";
import { evidence } from "../../text/evidence.js";
import { duration, speedup } from "../../text/format.js";
import { empty } from "../../shell/notice.js";
import { entry } from "../../shell/pages.js";

const TOP = 5;
const LEAST_GAIN = 1.005; // less is written as 1.00×
const ELSEWHERE = "trace"; // where everything can be seen
const ON_DEVICE = new Set(["device", "kernels"]);

/** The first few, and the rest on demand. @param {import("../../types").Report} report @param {import("../../types").Context} context */
export function findings(report, context) {
  if (!report.findings.length) {
    return empty("No findings.", "No known bottleneck takes enough of the step; the sentence above says what the time goes to.");
  }
  const isOnDevice = report.device.busy_share !== null;
  const hasSteps = report.steps.source !== "whole";
  const all = report.findings.map((found, at) => finding(found, at, pageOf(found.page, isOnDevice), context, hasSteps));
  const rest = all.slice(TOP);
  const more = rest.length ? h("details", {}, h("summary", {}, `${rest.length} more`), rest) : null;
  return [...all.slice(0, TOP), more];
}

/** Where more is to be seen: without a device its page has nothing to show, and a plug-in may name a page that is not there. @param {string} page @param {boolean} isOnDevice */
export function pageOf(page, isOnDevice) {
  return entry(page) && (isOnDevice || !ON_DEVICE.has(page)) ? page : ELSEWHERE;
}

/** @param {import("../../types").Finding} found @param {number} at @param {string} page @param {import("../../types").Context} context @param {boolean} hasSteps */
function finding(found, at, page, context, hasSteps) {
  const events = eventsLink(context, "finding", found.code);
  const links = [
    h("a", { class: "more", href: events }, "see it in the trace"),
    page === ELSEWHERE ? null : h("a", { class: "more", href: context.link(page) }, `see ${entry(page)?.title ?? page}`),
  ];
  const words = h(
    "div",
    {},
    h("h3", {}, h("a", { href: events }, found.title), h("code", {}, found.code)),
    h("p", {}, found.detail),
    found.fix ? h("p", { class: "fix" }, found.fix) : null,
    h("div", { class: "behind" }, figures(found, context), links),
  );
  return h("div", { class: "finding" }, h("b", {}, String(at + 1)), words, gain(found, hasSteps));
}

/** @param {import("../../types").Finding} found @param {import("../../types").Context} context */
function figures(found, context) {
  const known = evidence(found);
  if (!known.length && !found.where.length) return null;
  const pairs = known.map(([label, words]) => [h("dt", {}, label), h("dd", {}, words)]);
  const places = h("div", {});
  const details = h("details", {}, h("summary", {}, "evidence"), h("dl", {}, pairs), places);
  // The code is read when the evidence is opened.
  details.addEventListener("toggle", () => places.append(...found.where.map((place) => sourceOf(context, place))), { once: true });
  return details;
}

/** @param {import("../../types").Finding} found @param {boolean} hasSteps */
function gain(found, hasSteps) {
  if (found.saves_ns_per_step <= 0) return null;
  const saved = `saves about ${duration(found.saves_ns_per_step)}${hasSteps ? " a step" : ""}`;
  if (found.speedup.mid < LEAST_GAIN)
    return h("div", { class: "gain" }, h("span", {}, "hardly saves time by itself"));
  return h(
    "div",
    { class: "gain" },
    h("b", {}, speedup(found.speedup)),
    h("span", {}, saved),
  );
}
