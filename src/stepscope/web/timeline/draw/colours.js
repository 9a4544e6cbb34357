// The colours of slices by style; server/timeline/styles.py gives the numbers.

import { colour, isDark } from "../../shell/theme.js";

// Sixteen hues that also differ in lightness, so that neighbours can be told apart without seeing colours.
const LIGHT = [
  "#9fc5e8", "#f2b880", "#a8d5ba", "#d5b4e0", "#f5d76e", "#8fbcd4", "#e8a0a0", "#b5c98e",
  "#c7c1f0", "#7fc4c0", "#e3c9a8", "#9db4e0", "#f0b0c8", "#c3d69b", "#a6bfc9", "#d9c46f",
];
const DARK = [
  "#3f6f9c", "#9c6a35", "#3f7f5b", "#7a5590", "#8f7a22", "#2f6b85", "#954f4f", "#64783a",
  "#6660a8", "#2c7a76", "#7d6748", "#4a639c", "#93506c", "#6f8042", "#52707c", "#857226",
];
const PARTS = [
  "compute", "collective", "copy", "host_compute", "input", "compile", "python", "dispatch", "allocator", "sync", "device_gap",
  "host_collective", "io", "profiler", "unrecorded", "unexplained",
];
export const BY_NAME = 16;
export const STYLES = BY_NAME + PARTS.length + 3;

/** Parts of a colour. @param {string} text #rrggbb */
export function channels(text) {
  const value = Number.parseInt(text.slice(1, 7), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** A colour as ImageData has it on a little-endian machine. @param {string} text */
export function packed(text) {
  const [red, green, blue] = channels(text);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Black or white, whichever is read better on it. @param {string} text */
export function inkOn(text) {
  const [red, green, blue] = channels(text);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 135 ? "#15181d" : "#ffffff";
}

/** @typedef {{ texts: string[], pixels: Uint32Array, inks: string[], paper: string, ink: string, faint: string, rule: string, card: string, accent: string, error: string }} Palette */

/** All colours as the theme has them now. @returns {Palette} */
export function palette() {
  const isNight = isDark();
  const texts = [
    ...(isNight ? DARK : LIGHT),
    ...PARTS.map((part) => colour(`p-${part}`)),
    isNight ? "#5d6673" : "#b4bcc8",
    isNight ? "#33475f" : "#cfdcec",
    isNight ? "#41566f" : "#b9cce3",
  ];
  return {
    texts,
    pixels: Uint32Array.from(texts, packed),
    inks: texts.map(inkOn),
    paper: colour("paper"),
    ink: colour("ink"),
    faint: colour("faint"),
    rule: colour("rule"),
    card: colour("card"),
    accent: colour("accent"),
    error: colour("error"),
  };
}
