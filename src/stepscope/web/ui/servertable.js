// Tables of the server: sorted, filtered and paged there, however many rows they have; the hash keeps the choices.

import { isLeft } from "../shell/api.js";
import { fill, h } from "./dom.js";
import { leadsTo } from "./events.js";
import { count, many } from "../text/format.js";
import { empty, failure } from "../shell/notice.js";
import { integer } from "../shell/route.js";
import { cell } from "./tables.js";

const ROWS = 25;
const TYPING_MS = 250;

/**
 * @typedef {object} Options
 * @property {string} name  of the table
 * @property {string} title
 * @property {import("./dom.js").Content} [help]
 * @property {string} [prefix]  of its parameters in the hash, where a page has several tables
 * @property {() => import("../types").Query} [query]  more parameters
 * @property {string} [why]  it may be empty
 * @property {Record<string, (value: any) => string>} [write]  how to write some columns
 * @property {(row: Record<string, any>) => string | null} [to]  where a row leads
 * @property {string[]} [hide]  columns that say nothing here
 * @property {{ steps: number, columns: string[] } | null | 0} [perStep]  sums that are shown per step, unless totals are asked for
 * @property {string} [rowTip]
 * @property {HTMLElement[]} [tools]
 */

/** A sum as one step has it; times and sizes are whole numbers. @param {number} sum @param {number} steps @param {string} kind */
export function perStep(sum, steps, kind) {
  const one = sum / steps;
  return steps === 1 || kind === "flops" ? one : Math.round(one);
}

/** @param {import("../types").Context} context @param {Options} options */
export function serverTable(context, options) {
  const key = (/** @type {string} */ name) => `${options.prefix ?? ""}${name}`;
  const state = {
    sort: context.params.get(key("sort")) ?? "",
    desc: context.params.get(key("desc")) === "1",
    filter: context.params.get(key("filter")) ?? "",
    offset: integer(context.params, key("offset")) ?? 0,
    all: context.params.get(key("all")) === "1",
    totals: context.params.get(key("times")) === "total",
  };
  const body = h("tbody");
  const head = h("tr");
  const told = h("small", {});
  const trouble = h("div", {});
  const search = h("input", {
    type: "search",
    placeholder: "filter",
    "aria-label": `filter ${options.title}`,
    value: state.filter,
    "data-tip":
      "Words that must occur, or a comparison such as calls>10, self_ns>2ms or name:gemm (the names of columns are in the CSV).",
  });
  const csv = h("a", { class: "csv", download: true }, "CSV");
  const columns = h(
    "button",
    {
      type: "button",
      "aria-pressed": state.all,
      onclick: () => {
        state.all = !state.all;
        change();
      },
    },
    "all columns",
  );
  const totals = h(
    "button",
    {
      type: "button",
      "aria-pressed": state.totals,
      "data-tip": "Sums over all steps, which filters and the CSV always have, instead of one step's part.",
      onclick: () => {
        state.totals = !state.totals;
        totals.setAttribute("aria-pressed", String(state.totals));
        change();
      },
    },
    "totals",
  );
  /** What sums are divided by. @param {import("../types").Column} column */
  const divisor = (column) => (options.perStep && !state.totals && options.perStep.columns.includes(column.name) ? options.perStep.steps : 1);
  const back = h("button", { type: "button", onclick: () => turn(-ROWS) }, "‹ previous");
  const next = h("button", { type: "button", onclick: () => turn(ROWS) }, "next ›");
  const where = h("span", {});
  const pager = h("div", { class: "pager" }, back, where, next);
  const frame = h("div", { class: "table" }, h("table", {}, h("thead", {}, head), body));
  const element = h(
    "div",
    { class: "of", "data-table": options.name },
    h(
      "div",
      { class: "tools" },
      h("h3", {}, options.title),
      told,
      options.help ?? null,
      h("span", { class: "grow" }),
      options.tools ?? null,
      options.perStep && options.perStep.steps > 1 ? totals : null,
      columns,
      search,
      csv,
    ),
    trouble,
    frame,
    pager,
  );

  let turnNumber = 0;
  const address = () => `api/runs/${context.run}/table/${options.name}`;
  const wishes = () => ({
    rank: context.rank,
    ...options.query?.(),
    sort: state.sort,
    desc: state.desc && state.sort ? 1 : null,
    filter: state.filter,
  });
  const load = async () => {
    const mine = ++turnNumber;
    element.classList.add("busy");
    csv.setAttribute("href", context.api.url(address(), { ...wishes(), as: "csv" }));
    try {
      const page = await context.api.get(address(), { ...wishes(), offset: state.offset, limit: ROWS });
      if (mine !== turnNumber) return;
      fill(trouble);
      draw(page);
    } catch (error) {
      if (isLeft(error) || mine !== turnNumber) return;
      fill(trouble, failure(error), isAsked() ? plainly : null);
      frame.hidden = pager.hidden = !body.childElementCount;
    } finally {
      if (mine === turnNumber) element.classList.remove("busy");
    }
  };
  const change = () => {
    context.setParams(
      {
        [key("sort")]: state.sort,
        [key("desc")]: state.desc ? 1 : null,
        [key("filter")]: state.filter,
        [key("offset")]: state.offset || null,
        [key("all")]: state.all ? 1 : null,
        [key("times")]: state.totals ? "total" : null,
      },
      { replace: true },
    );
    void load();
  };
  const isAsked = () => Boolean(state.sort || state.filter || state.offset);
  const plainly = h(
    "button",
    {
      type: "button",
      onclick: () => {
        Object.assign(state, { sort: "", desc: false, filter: "", offset: 0 });
        search.value = "";
        change();
      },
    },
    "Show the table without order and filter",
  );
  const turn = (/** @type {number} */ by) => {
    state.offset = Math.max(0, state.offset + by);
    change();
  };
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => {
      state.filter = search.value;
      state.offset = 0;
      change();
    }, TYPING_MS);
  });

  /** @param {import("../types").TablePage} page */
  const draw = (page) => {
    const isEmpty = page.total === 0;
    frame.hidden = isEmpty;
    for (const tool of [search, csv, columns]) tool.hidden = isEmpty;
    if (isEmpty) fill(trouble, empty("No rows.", options.why ?? ""));
    const shown = page.columns
      .map((column, at) => ({ column, at }))
      .filter(({ column }) => (state.all || !column.minor) && !options.hide?.includes(column.name));
    columns.hidden = isEmpty || !page.columns.some((column) => column.minor);
    columns.setAttribute("aria-pressed", String(state.all));
    told.textContent = isEmpty
      ? ""
      : page.matching === page.total
        ? many(page.total, "row")
        : `${count(page.matching)} of ${count(page.total)} rows match`;
    fill(
      head,
      shown.map(({ column }) => header(column)),
    );
    fill(
      body,
      page.rows.map((row) => line(page.columns, shown, row)),
    );
    if (!isEmpty && !page.rows.length)
      fill(body, h("tr", {}, h("td", { class: "none", colspan: shown.length }, "No row matches.")));
    pager.hidden = page.matching <= ROWS;
    back.disabled = state.offset === 0;
    next.disabled = state.offset + ROWS >= page.matching;
    where.textContent = `${count(Math.min(page.matching, state.offset + 1))}–${count(Math.min(page.matching, state.offset + ROWS))} of ${count(page.matching)}`;
  };
  /** @param {import("../types").Column} column */
  const header = (column) => {
    const sorted = column.name === state.sort ? (state.desc ? "descending" : "ascending") : null;
    const sort = () => {
      state.desc = state.sort === column.name ? !state.desc : Boolean(column.numeric);
      state.sort = column.name;
      state.offset = 0;
      change();
    };
    return h(
      "th",
      { scope: "col", class: column.numeric ? "n" : null, "aria-sort": sorted, "data-tip": divisor(column) > 1 ? `${column.name}, per step` : column.name, "data-per": divisor(column) > 1 ? "step" : null },
      column.kind === "extent" ? column.title : h("button", { type: "button", onclick: sort }, column.title),
    );
  };
  /** @param {import("../types").Column[]} columns @param {{ column: import("../types").Column, at: number }[]} shown @param {any[]} row */
  const line = (columns, shown, row) => {
    const element = h(
      "tr",
      { "data-tip": options.rowTip ?? null },
      shown.map(({ column, at }) => {
        const write = options.write?.[column.name];
        if (write && row[at] !== null) return h("td", { class: column.numeric ? "n" : null }, write(row[at]));
        const value = typeof row[at] === "number" ? perStep(row[at], divisor(column), column.kind) : row[at];
        return cell(value, {
          kind: column.kind,
          key: column.name,
          bar: column.kind === "share" && column.name === "share",
        });
      }),
    );
    const named = () => Object.fromEntries(columns.map((column, at) => [column.name, row[at]]));
    return leadsTo(element, options.to?.(named()) ?? null);
  };
  void load();
  return Object.assign(element, {
    reload: () => {
      state.offset = 0;
      void load();
    },
  });
}
