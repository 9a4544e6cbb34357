// The marks of a figure in the order of the eye, for those who go through them by keyboard: what each says, and which comes next.

/**
 * @typedef {object} Mark
 * @property {number} curve
 * @property {any} point  its number in the curve; row and column in a heat map
 * @property {string} words
 * @property {any} [x]
 * @property {any} [y]
 *
 * @typedef {object} Marks
 * @property {number} count
 * @property {Mark | null} first
 * @property {(at: Mark, key: string) => Mark | null} next  null where there is none in that direction
 * @property {(at: Mark) => Mark | null} same  the mark of an earlier drawing in this one
 */

const FORWARD = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 });
const TENTH = 10; // a page is a tenth of the figure
export const KEYS = new Set([...Object.keys(FORWARD), "Home", "End", "PageUp", "PageDown"]);

/** All marks of what Plotly draws. @param {any[]} data @returns {Marks} */
export function marksOf(data) {
  const isAcross = data.some((curve) => curve.type === "bar" && curve.orientation === "h");
  const groups = data[0]?.type === "heatmap" ? columns(data[0]) : data[0]?.type === "box" ? ranked(data) : places(data);
  // In a stack the next one is above, in a heat map below.
  const [along, across] = isAcross ? ["ArrowDown", "ArrowRight"] : ["ArrowRight", data[0]?.type === "bar" ? "ArrowUp" : "ArrowDown"];
  return grid(groups, along, across);
}

/** @param {Mark[][]} groups @param {string} along  the key to the next group @param {string} across  the key to the next in a group @returns {Marks} */
function grid(groups, along, across) {
  const found = groups.filter((group) => group.length);
  const page = Math.max(1, Math.round(found.length / TENTH));
  const isAlong = (/** @type {string} */ key) => FORWARD[key] && /Right|Left/.test(key) === /Right|Left/.test(along);
  const next = (/** @type {Mark} */ at, /** @type {string} */ key) => {
    const group = found.findIndex((each) => each.includes(at));
    const place = found[group]?.indexOf(at) ?? 0;
    /** @param {number} to */
    const go = (to) => {
      const there = found[Math.max(0, Math.min(found.length - 1, to))];
      return there.find((mark) => mark.curve === at.curve && row(mark) === row(at)) ?? there[Math.min(place, there.length - 1)];
    };
    if (key === "Home") return go(0);
    if (key === "End") return go(found.length - 1);
    if (key === "PageUp" || key === "PageDown") return go(group + (key === "PageDown" ? page : -page));
    if (isAlong(key)) return found[group + FORWARD[key]] ? go(group + FORWARD[key]) : null;
    return found[group]?.[place + FORWARD[key] * FORWARD[across]] ?? null;
  };
  const all = found.flat();
  const same = (/** @type {Mark} */ at) => all.find((mark) => mark.curve === at.curve && String(mark.point) === String(at.point)) ?? null;
  return { count: all.length, first: all[0] ?? null, next, same };
}

/** @param {Mark} mark */
function row(mark) {
  return Array.isArray(mark.point) ? mark.point[0] : 0;
}

/** Bars and curves: what lies at the same place is a group. @param {any[]} data @returns {Mark[][]} */
function places(data) {
  /** @type {Map<any, Mark[]>} */
  const groups = new Map();
  data.forEach((curve, at) => {
    const isFlat = curve.type === "bar" && curve.orientation === "h";
    const [where, value] = isFlat ? [curve.y, curve.x] : [curve.x, curve.y];
    (where ?? []).forEach((/** @type {any} */ place, /** @type {number} */ number) => {
      if (value[number] === null || (curve.type === "bar" && !value[number])) return;
      const mark = { curve: at, point: number, x: curve.x[number], y: curve.y[number], words: words(curve, number) };
      groups.set(place, [...(groups.get(place) ?? []), mark]);
    });
  });
  const keys = [...groups.keys()];
  if (keys.every((key) => typeof key === "number")) keys.sort((a, b) => a - b);
  return keys.map((key) => groups.get(key) ?? []);
}

/** Points of boxes, by value; one group for the shortest of each, and so on. @param {any[]} data @returns {Mark[][]} */
function ranked(data) {
  const curves = data.map((curve, at) =>
    curve.x
      .map((/** @type {number} */ x, /** @type {number} */ number) => ({
        curve: at,
        point: number,
        x,
        y: curve.y[number],
        words: words(curve, number),
      }))
      .sort((/** @type {Mark} */ a, /** @type {Mark} */ b) => a.x - b.x),
  );
  const longest = Math.max(0, ...curves.map((curve) => curve.length));
  return Array.from({ length: longest }, (_, at) => curves.flatMap((curve) => (curve[at] ? [curve[at]] : [])));
}

/** Cells of a heat map, by column. @param {any} curve @returns {Mark[][]} */
function columns(curve) {
  return curve.x.map((/** @type {any} */ x, /** @type {number} */ column) =>
    curve.y.map((/** @type {any} */ y, /** @type {number} */ line) => ({
      curve: 0,
      point: [line, column],
      x,
      y,
      words: unescaped(String(curve.text?.[line]?.[column] ?? `${y}, ${x}: ${curve.z[line][column]}`)),
    })),
  );
}

/** What Plotly shows of a mark when the mouse is over it, as text. @param {any} curve @param {number} at */
function words(curve, at) {
  if (curve.hovertemplate) return filled(String(curve.hovertemplate), curve, at);
  if (Array.isArray(curve.text)) return unescaped(String(curve.text[at]));
  return `${curve.name ?? ""} ${curve.x[at]}: ${curve.y[at]}`.trim();
}

/** @param {string} template @param {any} curve @param {number} at */
function filled(template, curve, at) {
  const [shown, extra = ""] = template.replace("</extra>", "").split("<extra>");
  const write = (/** @type {string} */ text) =>
    text.replace(/%\{(x|y|customdata\[(\d+)\])(?::,?\.(\d+)f)?\}/g, (_, what, place, digits) => {
      const value = place === undefined ? curve[what][at] : curve.customdata[at][Number(place)];
      return digits === undefined || typeof value !== "number" ? String(value) : value.toFixed(Number(digits));
    });
  return unescaped([write(shown), write(extra)].filter(Boolean).join(", "));
}

/** @param {string} text */
function unescaped(text) {
  return text
    .replace(/<br>/g, "; ")
    .replace(/<[^>]*>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}
