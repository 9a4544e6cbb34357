// Figures for people, written as the report in the terminal writes them.

export const UNKNOWN = "–";
const DURATIONS = /** @type {[number, string][]} */ ([
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
]);
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const SCALES = /** @type {[number, string][]} */ ([
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
]);
const LEAST_RATE = 0.001;
const FRAMEWORKS = /** @type {Record<string, string>} */ ({ pytorch: "PyTorch", tensorflow: "TensorFlow", jax: "JAX" });
const FORMATS = /** @type {Record<string, string>} */ ({
  kineto: "Kineto",
  xplane: "XPlane",
  chrome: "Chrome trace",
  "tf-events": "TF event file",
  flight_recorder: "flight-recorder dump",
});

/** @param {number} value */
function threeFigures(value) {
  const size = Math.abs(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}

/** Three figures in the largest unit that keeps the figure at or above one. @param {number} ns */
export function duration(ns) {
  for (const [scale, unit] of DURATIONS) {
    if (Math.abs(ns) >= scale) return `${threeFigures(ns / scale)} ${unit}`;
  }
  return `${ns.toFixed(0)} ns`;
}

/** A byte count in binary units. @param {number} bytes */
export function size(bytes) {
  let unit = 0;
  let value = bytes;
  while (Math.abs(value) >= 1024 && unit + 1 < BYTES.length) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${value.toFixed(0)} B` : `${threeFigures(value)} ${BYTES[unit]}`;
}

/** The version of something, with the numbers of CUDA and CUPTI as people know them. @param {string} name @param {any} value @returns {[string, string]} */
export function version(name, value) {
  const title = name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .replace(/ version$/i, "")
    .toLowerCase()
    .replace(/\b(cuda|cupti|nccl|cpu|gpu)\b/g, (word) => word.toUpperCase());
  const written = String(value);
  const digits = /^(cuda )?(\d{4,6})$/.exec(written);
  if (!digits || !/CUDA|CUPTI|GPU/.test(title)) return [title, written];
  const number = Number(digits[2]);
  // CUDA counts 1000 for a major version, CUPTI since version 13 ten times that.
  const [major, minor] = number >= 100_000 ? [1e4, 100] : [1e3, 10];
  return [title, `${digits[1] ?? ""}${Math.floor(number / major)}.${Math.floor((number % major) / minor)}`];
}

/** 1,234,567. Not by the browser's own formatting, whose tables take longer to load than a page to draw. @param {number} value */
export function count(value) {
  const [whole, decimals] = String(Number(value.toFixed(3))).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return decimals ? `${grouped}.${decimals}` : grouped;
}

/** A share in per cent; what is there but rounds to nothing is shown as such. @param {number} value */
export function share(value) {
  const percent = 100 * value;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  return `${percent.toFixed(1)} %`;
}

/** @param {number} value */
export function scaled(value) {
  for (const [scale, letter] of SCALES) {
    if (Math.abs(value) >= scale) return `${significant(value / scale)} ${letter}`;
  }
  return significant(value);
}

/** Three significant figures without zeros at the end. @param {number} value */
export function significant(value) {
  if (Number.isInteger(value)) return count(value);
  const rounded = Number(value.toPrecision(3));
  return Math.abs(rounded) >= 1000 ? count(rounded) : String(rounded);
}

/** GB/s; what is there but next to nothing is shown as such. @param {number} value */
function rate(value) {
  return value > 0 && value < LEAST_RATE ? `< ${LEAST_RATE}` : significant(value);
}

/** @param {number} value */
export function times(value) {
  return `${value.toFixed(2)}×`;
}

const MOST_TIMES = 100;

/** A speed-up within bounds: `1.40–2.10× (most likely 1.70×)`. @param {import("../types").Interval} found */
export function speedup(found) {
  const likely = likeliest(found);
  return likely ? `${bounds(found)} (most likely ${likely})` : bounds(found);
}

/** Its bounds alone, where there is little room: `1.40–2.10×`. @param {import("../types").Interval} found */
export function bounds(found) {
  if (found.low >= MOST_TIMES) return `more than ${MOST_TIMES}×`;
  const [low, high] = [found.low, found.high].map(rounded);
  if (low === high) return `${low}×`;
  return found.high >= MOST_TIMES ? `${low}–more than ${high}×` : `${low}–${high}×`;
}

/** What is most likely within them, or nothing where that is an end. @param {import("../types").Interval} found */
export function likeliest(found) {
  const [low, mid, high] = [found.low, found.mid, found.high].map(rounded);
  return found.low >= MOST_TIMES || mid === low || mid === high ? "" : `${mid}×`;
}

/** @param {number} value */
function rounded(value) {
  return value.toFixed(value >= 10 ? 0 : value >= 3 ? 1 : 2);
}

/** A change in words, with its sign. @param {number} value @param {(value: number) => string} write */
export function signed(value, write) {
  if (value === 0) return write(0);
  return `${value > 0 ? "+" : "−"}${write(Math.abs(value))}`;
}

/** @param {string | null} name */
export function framework(name) {
  return (name ?? "unknown framework")
    .split(", ")
    .map((each) => FRAMEWORKS[each] ?? each)
    .join(", ");
}

/** @param {string} name */
export function format(name) {
  return FORMATS[name] ?? name;
}

/** A moment in UTC, the same everywhere. @param {number} unixNs */
export function moment(unixNs) {
  return `${new Date(unixNs / 1e6).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** How long ago, roughly. @param {number} unixNs @param {number} [nowMs] */
export function ago(unixNs, nowMs = Date.now()) {
  const seconds = Math.max(0, nowMs / 1000 - unixNs / 1e9);
  const steps = /** @type {[number, string][]} */ ([
    [365.25 * 86400, "year"],
    [86400, "day"],
    [3600, "hour"],
    [60, "minute"],
  ]);
  for (const [scale, unit] of steps) {
    if (seconds >= scale) return many(Math.floor(seconds / scale), unit) + " ago";
  }
  return "just now";
}

/** "1 step", "3 steps". @param {number} number @param {string} word */
export function many(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

/** Ranks as spans: 0–3, 7. @param {number[]} numbers */
export function spans(numbers) {
  /** @type {[number, number][]} */
  const found = [];
  for (const each of [...numbers].sort((a, b) => a - b)) {
    const last = found[found.length - 1];
    if (last && each === last[1] + 1) last[1] = each;
    else found.push([each, each]);
  }
  return found.map(([low, high]) => (low === high ? `${low}` : `${low}–${high}`)).join(", ");
}

const WAYS = /** @type {Record<string, (value: any) => string>} */ ({
  ns: duration,
  duration,
  time: duration,
  bytes: size,
  count,
  share,
  flops: scaled,
  rate,
  number: significant,
  flag: (value) => (value ? "yes" : "no"),
  extent: (value) => (Array.isArray(value) ? value.join("×") : String(value)),
  text: String,
  name: String,
});

export const NUMERIC = new Set([
  "ns",
  "duration",
  "time",
  "bytes",
  "count",
  "share",
  "flops",
  "rate",
  "number",
  "integer",
  "float",
]);

/** The value as people read it; what is not known is a dash. @param {any} value @param {string} kind */
export function shown(value, kind) {
  if (value === null || value === undefined) return UNKNOWN;
  const way = WAYS[kind];
  if (way && (typeof value === "number" || !NUMERIC.has(kind))) return way(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : significant(value);
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}
