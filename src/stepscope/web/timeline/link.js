// The address of what is shown: times, selection, marks, tracks and their order. Another page links here with `start`, `end`,
// `event` and `rank`; `of` is the event's rank where that is not the shown one, `open` are the ranks that are read beside that one.
// `events` and `facts` are a handle: the events behind a figure of another page (act/evidence.js). Times are those of the trace, often since 1970, which only whole numbers of any length tell to the nanosecond.

/** @typedef {import("./types").Chosen} Chosen */
/**
 * @typedef {{ start: bigint, end: bigint, kept: boolean }} Mark
 * @typedef {{ start: bigint | null, end: bigint | null, event: number | null, of: number | null, layer: string, from: bigint | null, to: bigint | null,
 *   tracks: string[], rank: number | null, open: number[], pinned: string[], folded: string[], filter: string, q: string,
 *   events: string, facts: string, marks: Mark[], order: Map<string, string[]> }} Place  order: of the tracks in each group that was arranged
 */

const NUMBER = /^-?\d{1,15}$/;
const TIME = /^-?\d{1,19}$/;
const MARK = /^(-?\d{1,19})\.(-?\d{1,19})(k?)$/; // k: until it is taken away
const GROUP = /^r\d+\/g\//;
const MOST_MARKS = 50;
const LONGEST = 200;
const MOST_KEYS = 500;
const MOST_OPEN = 32;

/** @param {URLSearchParams} params @param {string} name */
function integer(params, name) {
  const text = params.get(name);
  return text !== null && NUMBER.test(text) ? Number(text) : null;
}

/** @param {URLSearchParams} params @param {string} name */
function time(params, name) {
  const text = params.get(name);
  return text !== null && TIME.test(text) ? BigInt(text) : null;
}

/** @param {URLSearchParams} params @param {string} name */
function words(params, name) {
  return (params.get(name) ?? "").split(",").filter((word) => word && word.length <= LONGEST).slice(0, MOST_KEYS);
}

/** Keys with commas between them, also those that have some. @param {string[]} keys */
function listed(keys) {
  return keys.map((key) => key.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");
}

/** @param {URLSearchParams} params @param {string} name */
function keys(params, name) {
  return words(params, name).map((word) => word.replaceAll("%2C", ",").replaceAll("%25", "%"));
}

/** Each mark as its begin, its end, and whether it is kept. @param {string[]} found @returns {Mark[]} */
function marksOf(found) {
  return found.flatMap((word) => {
    const [, start, end, kept] = MARK.exec(word) ?? [];
    return start === undefined ? [] : [{ start: BigInt(start), end: BigInt(end), kept: kept === "k" }];
  });
}

/** A group, then its tracks in order, then the next group. @param {string[]} found */
function orderOf(found) {
  const order = /** @type {Map<string, string[]>} */ (new Map());
  let tracks = /** @type {string[]} */ ([]);
  for (const key of found) {
    if (!GROUP.test(key)) tracks.push(key);
    else order.set(key, (tracks = []));
  }
  return order;
}

/** @param {URLSearchParams} params @returns {Place} */
export function readPlace(params) {
  const layer = params.get("layer") ?? "";
  return {
    start: time(params, "start"),
    end: time(params, "end"),
    event: integer(params, "event"),
    of: integer(params, "of"),
    layer: /^[a-z]+$/.test(layer) ? layer : "events",
    from: time(params, "from"),
    to: time(params, "to"),
    tracks: words(params, "tracks"),
    rank: integer(params, "rank"),
    open: words(params, "open").filter((word) => NUMBER.test(word)).slice(0, MOST_OPEN).map(Number),
    pinned: keys(params, "pinned"),
    folded: keys(params, "folded"),
    marks: marksOf(words(params, "marks").slice(0, MOST_MARKS)),
    order: orderOf(keys(params, "order")),
    filter: (params.get("filter") ?? "").slice(0, LONGEST),
    q: (params.get("q") ?? "").slice(0, 300),
    events: params.get("events") ?? "",
    facts: params.get("facts") ?? "",
  };
}

/** The parameters of a place; what is as it always is gets left out. @param {Place} place @param {boolean} isWhole @returns {import("../types").Changes} */
export function writePlace(place, isWhole) {
  const at = (/** @type {bigint | null} */ moment) => (moment === null ? null : String(moment));
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
    marks: place.marks.slice(-MOST_MARKS).map((mark) => `${mark.start}.${mark.end}${mark.kept ? "k" : ""}`).join(",") || null,
    order: listed([...place.order].flatMap(([group, tracks]) => [group, ...tracks]).slice(0, MOST_KEYS)) || null,
    filter: place.filter || null,
    q: place.q || null,
  };
}
