// The address of what is shown: times, selection, tracks. Another page links here with `start`, `end`, `event` and `rank`;
// `of` is the event's rank where that is not the shown one.

/** @typedef {import("./types").Chosen} Chosen */
/**
 * @typedef {{ start: number | null, end: number | null, event: number | null, of: number | null, layer: string, from: number | null, to: number | null,
 *   tracks: string[], rank: number | null, pinned: string[], folded: string[], filter: string, q: string }} Place
 */

const NUMBER = /^-?\d{1,18}$/;
const LONGEST = 200;

/** @param {URLSearchParams} params @param {string} name */
function integer(params, name) {
  const text = params.get(name);
  return text !== null && NUMBER.test(text) ? Number(text) : null;
}

/** @param {URLSearchParams} params @param {string} name */
function words(params, name) {
  return (params.get(name) ?? "").split(",").filter((word) => word && word.length <= LONGEST).slice(0, 500);
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
    pinned: words(params, "pinned"),
    folded: words(params, "folded"),
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
    pinned: place.pinned.join(",") || null,
    folded: place.folded.join(",") || null,
    filter: place.filter || null,
    q: place.q || null,
  };
}
