// Rows as CSV. Names come from profiles: what a spreadsheet would run as a formula begins with an apostrophe.

/** As FORMULA_STARTS of safe.py has them. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

/**
 * A text that a spreadsheet shows and does not run.
 * @param {string} text
 */
export function safeCell(text) {
  return FORMULA.test(text) ? `'${text}` : text;
}

/**
 * The whole file. Numeric columns are what they are, also where numbers came as text, too large for JavaScript.
 * @param {{name: string, numeric?: boolean}[]} columns
 * @param {any[][]} rows
 */
export function csvText(columns, rows) {
  const lines = [
    columns.map(({ name }) => quoted(safeCell(name))),
    ...rows.map((row) => row.map((value, at) => cell(value, Boolean(columns[at]?.numeric)))),
  ];
  return lines.map((line) => `${line.join(",")}\n`).join("");
}

/** @param {any} value @param {boolean} numeric */
function cell(value, numeric) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return quoted(numeric ? value : safeCell(value));
  return quoted(typeof value === "object" ? JSON.stringify(value) : String(value));
}

/** @param {string} text */
function quoted(text) {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
