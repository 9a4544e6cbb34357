// What was live in memory at one moment: by kind as a bar, and by op and module as a table.

import { PALE } from "../../ui/account.js";
import { h } from "../../ui/dom.js";
import { many, share, size } from "../../text/format.js";
import { empty } from "../../shell/notice.js";
import { heading } from "../../ui/pieces.js";
import { table } from "../../ui/tables.js";

export const KINDS = /** @type {Record<string, string>} */ ({
  parameter: "p-compute",
  gradient: "p-collective",
  "optimizer state": "p-compile",
  activation: "p-input",
  input: "p-io",
  temporary: "p-python",
  output: "p-copy",
  workspace: "p-copy",
  unknown: "p-unexplained",
});
const LIVE = [
  { key: "kind", title: "kind" },
  { key: "op", title: "op", kind: "name" },
  { key: "scope", title: "module or scope", kind: "name" },
  { key: "bytes", title: "bytes", kind: "bytes" },
  { key: "share", title: "share", kind: "share", bar: true },
];

/** @param {string} title @param {(row: Record<string, any>) => string | null} to where a row leads @param {{ kind: string, op: string | null, scope: string | null, bytes: number }[]} rows @param {number | null} whole @param {number} total */
export function liveAt(title, to, rows, whole, total) {
  if (!rows.length)
    return [
      heading(title, "report/memory"),
      empty("Nothing is known to be live.", "No allocation that was recorded was live then."),
    ];
  const sum = whole || rows.reduce((all, row) => all + row.bytes, 0) || 1;
  /** @type {Map<string, number>} */
  const kinds = new Map();
  for (const row of rows) kinds.set(row.kind, (kinds.get(row.kind) ?? 0) + row.bytes);
  const ordered = [...kinds].sort((a, b) => b[1] - a[1]);
  return [
    heading(`${title}${whole === null ? "" : `: ${size(whole)}`}`, "report/memory"),
    h(
      "div",
      {
        class: "onebar",
        role: "img",
        "aria-label": ordered.map(([kind, value]) => `${kind} ${size(value)}`).join(", "),
      },
      ordered.map(([kind, value]) =>
        h(
          "i",
          {
            class: PALE.has((KINDS[kind] ?? "p-unexplained").slice(2)) ? "pale" : null,
            style: { flex: `${value} 1 0`, background: `var(--${KINDS[kind] ?? "p-unexplained"})` },
            "data-tip": `${kind}: ${size(value)}, ${share(value / sum)}`,
          },
          value / sum > 0.08 ? kind : "",
        ),
      ),
    ),
    h(
      "ul",
      { class: "legend" },
      ordered.map(([kind, value]) =>
        h(
          "li",
          {},
          h("i", { class: "swatch", style: { background: `var(--${KINDS[kind] ?? "p-unexplained"})` } }),
          `${kind} ${size(value)}`,
        ),
      ),
    ),
    table({
      columns: LIVE,
      rows: rows.map((row) => ({ ...row, share: row.bytes / sum })),
      total,
      to,
      title: `${many(total, "group")} of allocations`,
    }),
  ];
}
