// Tables of rows that are here already, such as those of the report: sorted and filtered in the page.

import { fill, h } from "./dom.js";
import { leadsTo } from "./events.js";
import { count, NUMERIC, shown, UNKNOWN } from "../text/format.js";
import { clipped, shortName } from "../text/names.js";
import { part, PARTS } from "../text/parts.js";
import { BETWEEN, ownFrame } from "../text/stack.js";

export const FILTERED = 10; // rows from which on a table can be filtered
const FOLDED = 15;
const WORDS = 60;
const SURELY_SHOWN = 24; // letters that the narrowest column of names has room for
const LONGEST = 2000; // of a tip; some kernels have names of pages

/**
 * @typedef {{ key: string, title: string, kind?: string, bar?: boolean, tip?: string }} Column
 * @typedef {Record<string, any>} Row
 */

/** A cell, whatever the table. @param {any} value @param {{ kind?: string, bar?: boolean, key?: string }} column */
export function cell(value, column) {
  const kind = column.kind ?? "text";
  const numeric = NUMERIC.has(kind);
  if (value === null || value === undefined) return h("td", { class: numeric ? "none n" : "none" }, UNKNOWN);
  const words = shown(value, kind);
  if (column.bar && typeof value === "number") {
    return h(
      "td",
      { class: "n share" },
      shareBar(value),
      words,
    );
  }
  if (numeric) return h("td", { class: "n", "data-tip": tipOf(value, kind) }, words);
  if (kind === "part" || (column.key === "part" && Object.hasOwn(PARTS, words))) {
    return h(
      "td",
      { "data-tip": part(words).meaning },
      h("i", { class: "swatch", style: { background: `var(--p-${words})` } }),
      part(words).title,
    );
  }
  if (kind === "name") return nameCell(words);
  return h("td", { class: words.length > WORDS ? "words" : null }, words);
}

/** The bar of a cell with a share, which leaves room for the number. @param {number} value */
export function shareBar(value) {
  return h("i", { style: { width: `calc((100% - var(--number)) * ${Math.min(1, Math.max(0, value)).toFixed(4)})` } });
}

/** The exact figure, where the cell rounds it. @param {number} value @param {string} kind */
function tipOf(value, kind) {
  if (kind === "ns" && Math.abs(value) >= 1000) return `${count(value)} ns`;
  if (kind === "bytes" && Math.abs(value) >= 1024) return `${count(value)} bytes`;
  return null;
}

/** A name, shortened; all of it on hover, and below itself after a click. @param {string} name */
export function nameCell(name) {
  const own = name.includes(BETWEEN) ? ownFrame(name) : null;
  return own === null ? shortened(name) : stackCell(name, own);
}

/** A stack: the user's own code on top, which is what can be changed; below it all frames. @param {string} stack @param {string} own */
function stackCell(stack, own) {
  const frames = h("small", { class: "frames" }, stack);
  const text = h("td", { class: "name", "data-tip": clipped(stack.split(BETWEEN).join("\n← "), LONGEST) }, h("div", {}, own), frames);
  unfolds(text, () => void text.classList.toggle("open"));
  return text;
}

/** @param {string} name */
function shortened(name) {
  const brief = shortName(name);
  const long = brief !== name || name.length > WORDS;
  const mayBeCut = long || name.length > SURELY_SHOWN;
  const words = h("div", {}, brief);
  const text = h(
    "td",
    { class: "name", "data-tip": mayBeCut ? clipped(name, LONGEST) : null },
    words,
  );
  const open = () => {
    words.textContent = text.classList.toggle("open") ? name : brief;
  };
  if (long) unfolds(text, open);
  return text;
}

/** A click shows all of it; in a row that leads elsewhere a click on the sign at its end. @param {HTMLElement} text @param {() => void} open */
function unfolds(text, open) {
  const sign = h("button", { type: "button", class: "unfold", tabindex: -1, "aria-hidden": "true", onclick: open }, "⋯");
  text.tabIndex = 0;
  text.append(sign);
  text.addEventListener("click", (event) => {
    if (event.target !== sign && !text.closest("tr.clickable")) open();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target === text) open();
  });
}

/** @param {any} a @param {any} b */
function order(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

/** Sorted; what is not known stays at the end. @param {Row[]} rows @param {string} key @param {boolean} falls */
export function sorted(rows, key, falls) {
  return [...rows].sort((a, b) => {
    const [left, right] = [a[key], b[key]];
    const [noLeft, noRight] = [left === null || left === undefined, right === null || right === undefined];
    if (noLeft || noRight) return Number(noLeft) - Number(noRight);
    return (falls ? -1 : 1) * order(left, right);
  });
}

/** Those that have the words somewhere. @param {Row[]} rows @param {Column[]} columns @param {string} words */
export function filtered(rows, columns, words) {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return rows;
  return rows.filter((row) =>
    columns.some((column) =>
      `${row[column.key] ?? ""} ${shown(row[column.key], column.kind ?? "text")}`.toLowerCase().includes(wanted),
    ),
  );
}

/**
 * @param {object} options
 * @param {string} [options.title]
 * @param {Column[]} options.columns  those without any value are left out
 * @param {Row[]} options.rows
 * @param {number} [options.total]  rows before they were capped
 * @param {(row: Row) => string | null} [options.to]  where a row leads
 * @param {boolean} [options.all]  also columns without any value
 * @param {boolean} [options.whole]  all rows at once, since somebody asked for them
 * @param {string} [options.sort]
 * @param {HTMLElement[]} [options.tools]
 */
export function table(options) {
  const columns = options.columns.filter(
    (column) => options.all || options.rows.some((row) => row[column.key] !== null && row[column.key] !== undefined),
  );
  let key = options.sort ?? "";
  let falls = true;
  let folded = !options.whole && options.rows.length > FOLDED + 3;
  const body = h("tbody");
  const heads = columns.map((column) =>
    h(
      "th",
      { scope: "col", class: NUMERIC.has(column.kind ?? "") ? "n" : null, "data-tip": column.tip ?? null },
      h("button", { type: "button", onclick: () => sortBy(column) }, column.title),
    ),
  );
  const search = h("input", {
    type: "search",
    placeholder: "filter",
    "aria-label": `filter ${options.title ?? "the table"}`,
    oninput: () => {
      folded = false;
      draw();
    },
  });
  const unfold = h("button", {
    type: "button",
    onclick: () => {
      folded = false;
      draw();
    },
  });
  /** @param {Column} column */
  const sortBy = (column) => {
    falls = key === column.key ? !falls : NUMERIC.has(column.kind ?? "");
    key = column.key;
    draw();
  };
  const draw = () => {
    const found = filtered(options.rows, columns, search.value);
    const ordered = key ? sorted(found, key, falls) : found;
    heads.forEach((head, at) => {
      if (columns[at].key === key) head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    fill(
      body,
      ordered.slice(0, folded ? FOLDED : undefined).map((row) => line(row, columns, options.to)),
    );
    if (!ordered.length)
      fill(body, h("tr", {}, h("td", { class: "none", colspan: columns.length }, "No row matches.")));
    unfold.hidden = !folded;
    unfold.textContent = `show all ${count(ordered.length)} rows`;
  };
  draw();
  const tools = [
    options.title ? h("h3", {}, options.title) : null,
    h("span", { class: "grow" }),
    options.tools ?? null,
    options.rows.length >= FILTERED ? search : null,
  ];
  const cut =
    (options.total ?? 0) > options.rows.length
      ? h("p", { class: "cut" }, `${count(options.rows.length)} of ${count(options.total ?? 0)} rows.`)
      : null;
  const hasTools = Boolean(options.title || options.tools || options.rows.length >= FILTERED);
  return h(
    "div",
    { class: "of" },
    hasTools ? h("div", { class: "tools" }, tools) : null,
    h("div", { class: "table" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)),
    unfold,
    cut,
  );
}

/** @param {Row} row @param {Column[]} columns @param {((row: Row) => string | null) | undefined} to */
function line(row, columns, to) {
  return leadsTo(h("tr", {}, columns.map((column) => cell(row[column.key], column))), to?.(row) ?? null);
}
