// The figures that a finding rests on, in words, as the report in the terminal has them.

import { count, duration, share, size } from "./format.js";
import { part, PARTS, placed } from "./parts.js";

/** What is measured; the unit comes with the figure. @param {string} key */
export function label(key) {
  return key
    .split("_")
    .filter((word) => word !== "ns" && word !== "bytes")
    .join(" ");
}

/** The figure with the unit that its name ends with. @param {string} key @param {any} value @returns {string} */
export function words(key, value) {
  if (Array.isArray(value)) return value.map((each) => words(key, each)).join(", ");
  if (value !== null && typeof value === "object") {
    const name = placed(String(value.name ?? ""), value.place);
    const rest = Object.entries(value)
      .filter(([each]) => each !== "name" && each !== "place")
      .map(([each, figure]) =>
        Object.hasOwn(PARTS, each) && typeof figure === "number"
          ? `${part(each).title} ${duration(figure)}`
          : `${label(each)} ${words(each, figure)}`.trim(),
      );
    return name && rest.length ? `${name} (${rest.join(", ")})` : name || rest.join(", ");
  }
  if (typeof value !== "number") return Object.hasOwn(PARTS, value) ? part(value).title : String(value);
  const units = key.split("_");
  if (units.includes("ns")) return duration(value);
  if (units.includes("bytes")) return size(value);
  return key.endsWith("share") ? share(value) : count(value);
}

/** @param {import("../types").Finding} finding @returns {[string, string][]} */
export function evidence(finding) {
  return Object.entries(finding.evidence)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && !value.length))
    .map(([key, value]) => [label(key), words(key, value)]);
}
