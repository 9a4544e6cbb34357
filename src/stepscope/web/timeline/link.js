// The address of what is shown: times, selection, tracks. Another page links here with `start`, `end`, `event` and `rank`;
// `of` is the event's rank where that is not the shown one, `open` are the ranks that are read beside that one.

/** @typedef {import("./types").Chosen} Chosen */
/**
 * @typedef {{ start: number | null, end: number | null, event: number | null, of: number | null, layer: string, from: number | null, to: number | null,
 *   tracks: string[], rank: number | null, open: number[], pinned: string[], folded: string[], filter: string, q: string }} Place
 */

const NUMBER = /^-?\d{1,18}$/;
const LONGEST = 200;
const MOST_OPEN = 32;

/** @param {URLSearchParams} params @param {string} name */
function integer(params, name) {
  const text = params.get(name);
  return text !== null && NUMBER.test(text) ? Number(text) : null;
}

/** @param {URLSearchParams} params @param {string} name */
function words(params, name) {
  return (params.get(name) ?? "").split(",").filter((word) => word && word.length <= LONGEST).slice(0, 500);
}

/** Keys with commas between them, also those that have some. @param {string[]} keys */
function listed(keys) {
  return keys.map((key) => key.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");
}

/** @param {URLSearchParams} params @param {string} name */
function keys(params, name) {
  return words(params, name).map((word) => word.replaceAll("%2C", ",").replaceAll("%25", "%"));
}

/** @param {URLSearchParams} params @returns {Place} */
export function readPlace(params) {
  const layer = params.get("layer") ?? "";
  return {
    start: integer(params, "start"),
    end: integer(params, "end"),
    event: integer(params, "event"),
    of: integer(params, "of"),
    layer: /^[a-z]+$/.test(layer) ? layer : "events",
    from: integer(params, "from"),
    to: integer(params, "to"),
    tracks: words(params, "tracks"),
    rank: integer(params, "rank"),
    open: words(params, "open").filter((word) => NUMBER.test(word)).slice(0, MOST_OPEN).map(Number),
    pinned: keys(params, "pinned"),
    folded: keys(params, "folded"),
    filter: (params.get("filter") ?? "").slice(0, LONGEST),
    q: (params.get("q") ?? "").slice(0, 300),
  };
}

/** The parameters of a place; what is as it always is gets left out. @param {Place} place @param {boolean} isWhole @returns {import("../types").Changes} */
export function writePlace(place, isWhole) {
  const at = (/** @type {number | null} */ time) => (time === null ? null : String(Math.round(time)));
  return {
    start: isWhole ? null : at(place.start),
    end: isWhole ? null : at(place.end),
    event: place.event,
    of: place.event !== null ? place.of : null,
    layer: place.event !== null && place.layer !== "events" ? place.layer : null,
    from: at(place.from),
    to: at(place.to),
    tracks: place.tracks.join(",") || null,
    open: place.open.slice(0, MOST_OPEN).join(",") || null,
    pinned: listed(place.pinned) || null,
    folded: listed(place.folded) || null,
    filter: place.filter || null,
    q: place.q || null,
  };
}
