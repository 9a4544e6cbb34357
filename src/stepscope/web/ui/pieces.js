// Small pieces that several pages share.

import { h } from "./dom.js";
import { helpLink } from "../shell/help.js";

/** A page's heading with its link to the documentation. @param {string} title @param {string} help */
export function pageHead(title, help) {
  return h("div", { class: "with-help" }, h("h1", {}, title), helpLink(help, "what is on this page?"));
}

/** @param {string} title @param {string} help */
export function heading(title, help) {
  return h("div", { class: "with-help" }, h("h2", {}, title), helpLink(help));
}

/** Single figures in a row; those without a value are left out. @param {[string, string | null | undefined | false][]} pairs */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value);
  return known.length
    ? h(
        "dl",
        { class: "facts" },
        known.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))),
      )
    : null;
}

const BUTTONS = 8; // more are a list

/**
 * Buttons of which one is pressed; a list where they are many.
 * @param {string} label
 * @param {[string, string][]} choices  value and title
 * @param {string} chosen
 * @param {(value: string) => void} onChoose
 */
export function choice(label, choices, chosen, onChoose) {
  if (choices.length > BUTTONS) return list(label, choices, chosen, onChoose);
  const buttons = choices.map(([value, title]) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": value === chosen,
        onclick: () => {
          buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(choices[at][0] === value)));
          onChoose(value);
        },
      },
      title,
    ),
  );
  return h(
    "div",
    { class: "row", role: "group", "aria-label": label, style: { margin: "0" } },
    h("span", { class: "sub" }, label),
    buttons,
  );
}

/** @param {string} label @param {[string, string][]} choices @param {string} chosen @param {(value: string) => void} onChoose */
function list(label, choices, chosen, onChoose) {
  const select = h(
    "select",
    { onchange: () => onChoose(select.value) },
    choices.map(([value, title]) => h("option", { value }, title)),
  );
  select.value = chosen;
  return h("label", { class: "row", style: { margin: "0" } }, h("span", { class: "sub" }, label), select);
}

/** What to call the memory of a device, or of the host. @param {import("../types").Report} report @param {import("../types").MemoryDevice} found */
export function whereOf(report, found) {
  const number = found.device === null || found.device_kind === "cpu" ? "" : ` ${found.device}`;
  const name = `${found.device_kind === "cpu" ? "host" : found.device_kind}${number}${found.source === "hlo" ? " program" : ""}`;
  return report.profile.ranks.length > 1 ? `${name} of rank ${found.rank}` : name;
}

/** The fullest device is the one to look at: by what it has, else by what it took. The host comes last. @param {import("../types").MemoryDevice[]} devices */
export function fullest(devices) {
  const full = (/** @type {import("../types").MemoryDevice} */ each) =>
    [Number(each.device_kind !== "cpu"), each.capacity_bytes ? (each.peak_bytes ?? 0) / each.capacity_bytes : 0, each.peak_bytes ?? 0];
  const isFuller = (/** @type {number[]} */ one, /** @type {number[]} */ other) => {
    const at = one.findIndex((value, place) => value !== other[place]);
    return at >= 0 && one[at] > other[at];
  };
  return devices.reduce((best, each, at) => (isFuller(full(each), full(devices[best])) ? at : best), 0);
}
