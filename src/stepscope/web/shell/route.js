// Deep links: everything that is shown is in the hash, `#/<page>?run=<id>&...`.

/** @typedef {{ page: string, params: URLSearchParams }} Place */

/** @param {string} hash @returns {Place} */
export function parse(hash) {
  const [path, query = ""] = split(hash.replace(/^#\/?/, ""));
  return { page: path.replace(/[^a-z_-]/g, ""), params: new URLSearchParams(query) };
}

/** @param {string} text */
function split(text) {
  const mark = text.indexOf("?");
  return mark < 0 ? [text] : [text.slice(0, mark), text.slice(mark + 1)];
}

/** @param {string} page @param {URLSearchParams} params */
export function write(page, params) {
  const query = params.toString();
  return `#/${page}${query ? `?${query}` : ""}`;
}

/**
 * The parameters with the changes applied; null, undefined and "" take one out.
 * @param {URLSearchParams} params
 * @param {import("../types").Changes} changes
 */
export function changed(params, changes) {
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") next.delete(name);
    else next.set(name, String(value));
  }
  return next;
}

/** A whole number, or null where there is none. @param {URLSearchParams} params @param {string} name */
export function integer(params, name) {
  const text = params.get(name);
  return text !== null && /^-?\d{1,19}$/.test(text) ? Number(text) : null;
}
