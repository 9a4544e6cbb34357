// From a row, a mark or a finding to its events: the address of the trace viewer that shows them, and rows that lead there.
// A handle is a kind and a name (`kernel:NAME`); further facts identify one of several rows of that name. See server/evidence.

import { follow } from "../shell/place.js";

const LAUNCH = ["op", "grid", "block", "registers", "shared_bytes", "precision", "tensor_cores", "eligible"];
const BY = /** @type {Record<string, string[]>} */ ({
  kernel: LAUNCH,
  collective: ["group", "group_size", "dtype"],
  copy: ["source", "target"],
});

/** @typedef {import("../types").Context} Context */

/**
 * The address of the trace viewer at these events.
 * @param {Context} context @param {string} kind @param {string | number} name @param {Record<string, any> | null} [facts] @param {number | null} [rank]
 * @param {string} [run]  where that is not the one of the page
 */
export function eventsLink(context, kind, name, facts = null, rank = context.rank, run = context.run) {
  const known = facts && Object.keys(facts).length ? JSON.stringify(facts) : null;
  return context.link("trace", { run, events: `${kind}:${name}`, facts: known, rank });
}

/** Opens them. @param {Context} context @param {string} kind @param {string | number} name @param {Record<string, any> | null} [facts] @param {number | null} [rank] */
export function openEvents(context, kind, name, facts = null, rank = context.rank) {
  follow(eventsLink(context, kind, name, facts, rank));
}

/** Of rows of a table, which these columns identify. @param {Context} context @param {string} kind @param {string} [column] @param {string[]} [by] */
export function rowLinks(context, kind, column = "name", by = BY[kind] ?? []) {
  return (/** @type {Record<string, any>} */ row) => {
    const facts = Object.fromEntries(by.filter((key) => row[key] !== undefined).map((key) => [key, row[key]]));
    return eventsLink(context, kind, row[column] ?? "", facts);
  };
}

/** Of a step: of its rank, on its device. @param {Context} context @param {{ rank: number, step: number, device: number | null }} row @param {string | null} [part] */
export function stepLink(context, row, part = null) {
  return eventsLink(context, "step", row.step, { ...(row.device === null || row.device === undefined ? {} : { device: row.device }), ...(part ? { part } : {}) }, row.rank);
}

/** A row that a click or Enter follows; arrow keys go to the next one. @template {HTMLElement} T @param {T} element @param {string | null} address */
export function leadsTo(element, address) {
  if (address === null) return element;
  element.classList.add("clickable");
  element.tabIndex = 0;
  element.dataset.to = address;
  element.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("button, a, input, summary")) return;
    if (!String(getSelection() ?? "")) follow(address, event); // while a name is marked, to be copied, clicks do nothing
  });
  element.addEventListener("keydown", (event) => {
    if (event.target !== element) return;
    if (event.key === "Enter") follow(address);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") beside(element, event.key === "ArrowDown")?.focus();
    else return;
    event.preventDefault();
  });
  return element;
}

/** @param {HTMLElement} row @param {boolean} isNext */
function beside(row, isNext) {
  const found = isNext ? row.nextElementSibling : row.previousElementSibling;
  return found instanceof HTMLElement && found.dataset.to ? found : null;
}
