// Tables of what differs between two runs: A, B and the difference, good or bad.

import { fill, h } from "../../ui/dom.js";
import { count, duration, share, shown, signed, size, UNKNOWN } from "../../text/format.js";
import { helpLink } from "../../shell/help.js";
import { leadsTo } from "../../ui/events.js";
import { FILTERED, nameCell, sorted } from "../../ui/tables.js";

/** @typedef {{ name: string, a: number | null, b: number | null, difference: number, unit: string, noise: number | null, significant: boolean, scope?: string | null, shapes?: string | null, part?: string | null, op?: string | null, note?: string }} Row */

const WRITE = /** @type {Record<string, (value: number) => string>} */ ({ ns: duration, bytes: size, share, count });
const MORE_IS_BETTER = new Set([
  "device busy",
  "model FLOPs utilisation",
  "tensor cores",
  "SM efficiency",
  "occupancy",
]);
/** @type {[keyof Row, string, string | null][]} */
const COLUMNS = [
  ["name", "name", null],
  ["a", "A", null],
  ["b", "B", null],
  ["difference", "difference", "B − A. Coloured where it is significant"],
  ["noise", "± noise", "The 95 % margin: how much two runs of the same code may differ"],
];
const NEUTRAL = new Set(["steps", "ranks"]);

/** Whether the difference is within noise; shares are not judged, and count if they differ by a point. @param {Row} row */
function isNoise(row) {
  if (!row.difference || NEUTRAL.has(row.name)) return true;
  if (row.unit !== "share") return !row.significant;
  return Math.abs(row.difference) < 0.01;
}

/** A difference of shares: a per cent of a share would be something else. @param {number} value */
function points(value) {
  return `${(100 * value).toFixed(1)} points`;
}

/** The difference, good or bad; nothing where one of the two is not known. @param {Row} row */
function difference(row) {
  if (row.unit === "share" && (row.a === null || row.b === null)) return h("td", { class: "none n" }, UNKNOWN);
  const write = row.unit === "share" ? points : (WRITE[row.unit] ?? ((/** @type {number} */ value) => shown(value, row.unit)));
  const isLess = row.difference < 0;
  const tone = isNoise(row) ? "" : isLess === MORE_IS_BETTER.has(row.name) ? "worse" : "better";
  const ratio =
    row.a && row.b !== null && row.unit !== "share" && row.difference
      ? ` (${signed(100 * (row.b / row.a - 1), (value) => `${value.toFixed(1)} %`)})`
      : "";
  return h("td", { class: `n ${tone}` }, `${signed(row.difference, write)}${ratio}`);
}

/** The noise of the difference; nothing where it was not measured. @param {Row} row */
function chance(row) {
  return h("td", { class: row.noise ? "n sub" : "none n" }, row.noise ? `± ${shown(row.noise, row.unit)}` : UNKNOWN);
}

/** The name, and below it what tells rows of one name apart. @param {Row} row */
function named(row) {
  const cell = nameCell(row.name);
  const more = [row.scope, row.shapes, row.op ? `of ${row.op}` : null, row.note].filter(Boolean).join(" · ");
  if (more) cell.append(h("small", { class: "frames", "data-tip": more }, more));
  return cell;
}

const SIDES = /** @type {const} */ (["a", "b"]);

/** Where there is more of it: that is what one wants to see. @param {Row} row @returns {"a" | "b"} */
export function largerSide(row) {
  return row.b === null || (row.a !== null && row.a > row.b) ? "a" : "b";
}

/** A value, which leads to its events in that run. @param {Row} row @param {"a" | "b"} side @param {((row: Row, side: "a" | "b") => string) | undefined} to */
function valueCell(row, side, to) {
  const value = row[side];
  if (value === null) return h("td", { class: "none n" }, UNKNOWN);
  const words = shown(value, row.unit);
  if (!to) return h("td", { class: "n" }, words);
  return h("td", { class: "n" }, h("a", { href: to(row, side), class: "of-events", "data-tip": `Its events in ${side.toUpperCase()}` }, words));
}

/**
 * @param {string} title
 * @param {Row[]} all
 * @param {{ help: string, total?: number, name?: (row: Row) => HTMLTableCellElement, to?: (row: Row, side: "a" | "b") => string }} options `to`: the
 *   address of the events of a row in one of the runs
 */
export function differences(title, all, options) {
  const body = h("tbody");
  const search = h("input", {
    type: "search",
    placeholder: "filter",
    "aria-label": `filter ${title}`,
    oninput: () => draw(),
  });
  let key = "";
  let falls = true;
  let most = 15;
  const more = h("button", {
    type: "button",
    onclick: () => {
      most = all.length;
      draw();
    },
  });
  const columns = COLUMNS.filter(([name]) => name !== "noise" || all.some((row) => row.noise));
  const heads = columns.map(([name, words, tip]) =>
    h(
      "th",
      { scope: "col", class: name === "name" ? null : "n", "data-tip": tip },
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            falls = key === name ? !falls : name !== "name";
            key = name;
            draw();
          },
        },
        words,
      ),
    ),
  );
  const draw = () => {
    const found = all.filter((row) => `${row.name} ${row.scope ?? ""} ${row.shapes ?? ""}`.toLowerCase().includes(search.value.toLowerCase()));
    const ordered = key ? /** @type {Row[]} */ (sorted(found, key, falls)) : found;
    heads.forEach((head, at) => {
      if (columns[at][0] === key)
        head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    fill(
      body,
      ordered.slice(0, most).map((row) =>
        leadsTo(h(
          "tr",
          {},
          options.name ? options.name(row) : named(row),
          SIDES.map((side) => valueCell(row, side, options.to)),
          difference(row),
          columns.length === COLUMNS.length ? chance(row) : null,
        ), options.to ? options.to(row, largerSide(row)) : null),
      ),
    );
    more.hidden = ordered.length <= most;
    more.textContent = `show all ${count(ordered.length)} rows`;
  };
  draw();
  return h(
    "div",
    { class: "of" },
    h(
      "div",
      { class: "tools" },
      h("h3", {}, title),
      helpLink(options.help),
      h("span", { class: "grow" }),
      all.length >= FILTERED ? search : null,
    ),
    h("div", { class: "table" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)),
    more,
    (options.total ?? 0) > all.length
      ? h("p", { class: "cut" }, `The ${count(all.length)} largest differences of ${count(options.total ?? 0)}.`)
      : null,
  );
}
