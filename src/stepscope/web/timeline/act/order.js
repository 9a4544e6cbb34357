// Tracks change places: with those beside them, or pinned ones with one another.

/** @typedef {import("../types").Line} Line */

/** @param {Line} line */
function isHeading(line) {
  return line.kind === "group" || line.kind === "rank";
}

/** The tracks that may change places with this one, and the group that they are in. @param {Line[]} lines @param {string} key */
function siblings(lines, key) {
  const at = lines.findIndex((line) => line.key === key && !line.pinned);
  let first = at;
  while (first > 0 && !isHeading(lines[first - 1])) first -= 1;
  let last = at + 1;
  while (last < lines.length && !isHeading(lines[last])) last += 1;
  const heading = lines[first - 1];
  return at < 0 || heading?.kind !== "group" ? null : { heading: heading.key, keys: lines.slice(first, last).map((line) => line.key) };
}

/**
 * Moves a track to another place; returns whether there is such a place.
 * @param {import("../lines.js").Arrangement} arrangement @param {Line[]} lines @param {string} key
 * @param {(keys: string[], at: number) => number} placeOf
 */
export function reorder(arrangement, lines, key, placeOf) {
  const { pinned, order } = arrangement;
  const found = pinned.includes(key) ? { heading: null, keys: pinned } : siblings(lines, key);
  const from = found?.keys.indexOf(key) ?? -1;
  const to = found && from >= 0 ? placeOf(found.keys, from) : -1;
  if (!found || to < 0 || to >= found.keys.length) return false;
  found.keys.splice(to, 0, ...found.keys.splice(from, 1));
  if (found.heading !== null) order.set(found.heading, found.keys);
  return true;
}
