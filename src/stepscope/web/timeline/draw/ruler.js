// Where a ruler has its marks, and how times are written beside them.

const UNITS = /** @type {[number, string][]} */ ([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);

/** The smallest of 1, 2, 5, 10, … that is no less. @param {number} ns */
export function niceStep(ns) {
  const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
  for (const times of [1, 2, 5]) {
    if (power * times >= ns) return power * times;
  }
  return power * 10;
}

/** A time since the begin of the trace with as many figures as the step needs. @param {number} ns @param {number} step */
export function tickText(ns, step) {
  const size = Math.max(Math.abs(ns), step);
  const [scale, unit] = UNITS.find(([each]) => size >= each) ?? UNITS[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / scale) - 1e-9)));
  return `${(ns / scale).toFixed(digits)} ${unit}`;
}

/**
 * Marks at round times.
 * @param {number} start @param {number} end @param {number} width @param {number} [apart] pixels between two marks
 */
export function ticks(start, end, width, apart = 110) {
  const step = niceStep(((end - start) * apart) / Math.max(width, 1));
  /** @type {{ time: number, text: string }[]} */
  const found = [];
  for (let at = Math.ceil(start / step); at * step <= end && found.length < 200; at += 1) {
    found.push({ time: at * step, text: tickText(at * step, step) });
  }
  return { step, marks: found };
}
