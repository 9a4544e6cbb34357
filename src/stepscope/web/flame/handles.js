// From a box to its events: the handle that the server finds them by (server/evidence/flames.py).

/** @typedef {import("./tree.js").Node} Node */
/** @typedef {{ kind: string, name: string, facts: Record<string, any> }} Handle */
/** @typedef {"down" | "inverted" | "callers" | "callees" | "order"} View  which picture the box is in */

/** @param {Node} node @param {View} view @param {boolean} isStack  by call stack, not by scope @returns {Handle | null} */
export function handleOf(node, view, isStack) {
  if (node.kind === "rest" || node.kind === "all") return null;
  if (view === "order") return node.like === null ? null : { kind: "event", name: String(node.like), facts: {} };
  return isStack ? frameHandle(node, view) : scopeHandle(node, view);
}

/** @param {Node} node @param {View} view @returns {Handle | null} */
function frameHandle(node, view) {
  const { like, path } = node;
  if (like === null) return null;
  if (view === "down") return { kind: "frame", name: node.name, facts: { like } };
  const isWhole = node.kind === "thread"; // all the way out
  if (view === "inverted") return { kind: "frame", name: path[0].name, facts: { like, ...(isWhole ? {} : { levels: path.length - 1 }), own: true } };
  if (view === "callers") return { kind: "frame", name: baseOf(node).name, facts: { like, ...(isWhole ? {} : { levels: path.length }), base: 0 } };
  return { kind: "frame", name: node.name, facts: { like, levels: path.length, base: path.length } };
}

/** @param {Node} node @param {View} view @returns {Handle} */
function scopeHandle(node, view) {
  const names = node.path.map((each) => each.name);
  if (view === "down") return scope(names, "top");
  if (view === "inverted") return scope(names.reverse(), "end");
  const base = baseOf(node).name;
  return scope(view === "callers" ? [...names.reverse(), base] : [base, ...names], "");
}

/** @param {string[]} names @param {string} anchored */
function scope(names, anchored) {
  return { kind: "scope", name: names.join("/"), facts: { anchored } };
}

/** The function in the middle of a sandwich. @param {Node} node @returns {Node} */
function baseOf(node) {
  let at = node;
  while (at.above) at = at.above;
  return at;
}
