// What is written in a box, which is often narrow, and what kind of thing it is: its category, or the module it belongs to.

import { clipped, shortName } from "../text/names.js";
import { ownFrame, placeOf } from "../text/stack.js";

/** @typedef {import("./tree.js").Node} Node */

const LEAST = 3; // letters that say something
const NAMELESS = /^<\w+>$/; // <module>, <lambda>
const NUMBER = /[_.]?\d+$/;
const PACKAGE = /(?:site|dist)-packages\/([^/(]+)/;

/** The function without its file, the module without its kind; never a path. @param {string} name */
export function label(name) {
  const place = placeOf(name);
  if (place) {
    const words = shortName(place.function);
    return NAMELESS.test(words) ? `${place.file.slice(place.file.lastIndexOf("/") + 1)} ${words}` : words;
  }
  return shortName(name)
    .replace(/(?<=\S) \(\S*\.py:\d+\)$/, "")
    .replace(/^(nn\.Module|autograd::engine::evaluate_function): (?=\S)/, "");
}

/** As much of a label as the room has, without its namespace or with the middle left out; "" if that would say nothing. @param {string} text @param {number} room pixels @param {(text: string) => number} width */
export function fitted(text, room, width) {
  if (width(text) <= room) return text;
  const bare = /^[\w.]+::(\w.*)$/.exec(text)?.[1] ?? text;
  const whole = width(bare);
  if (whole <= room) return bare;
  for (let letters = Math.floor((room / whole) * bare.length); letters >= LEAST; letters -= 1) {
    const short = clipped(bare, letters);
    if (width(short) <= room) return short;
  }
  return "";
}

/** Categories in the order of the legend: by kind of event its title and its colour of the theme, or the number of one by hue. @type {Record<string, [string, string | number]>} */
export const CATEGORIES = {
  op: ["ops", "p-compute"],
  module: ["modules and scopes", 0],
  python: ["Python", "p-python"],
  annotation: ["annotations", 3],
  runtime: ["runtime calls", "p-dispatch"],
  sync: ["synchronisation", "p-sync"],
  input: ["input", "p-input"],
  collective: ["communication", "p-collective"],
  compile: ["compilation", "p-compile"],
  io: ["files", "p-io"],
  copy: ["copies", "p-copy"],
  overhead: ["profiler", "p-profiler"],
  thread: ["threads", 14],
};
export const OTHER = "other";

/** @param {Node} node */
export function categoryOf(node) {
  return Object.hasOwn(CATEGORIES, node.kind) ? node.kind : OTHER;
}

/** The package of a frame, the namespace of an op, the class of a module; an op in a module belongs to that. @param {Node} node @returns {string} */
export function moduleOf(node) {
  const { name, kind, above } = node;
  if (kind === "thread") return "threads";
  if (kind === "op" && above?.kind === "module") return moduleOf(above);
  if (kind === "module" || name.startsWith("nn.Module: ")) return name.replace(/^nn\.Module: /, "").replace(NUMBER, "") || name;
  const place = placeOf(name);
  if (place) return packageOf(name, place.file);
  if (name.startsWith("<")) return "built-in";
  if (/^(cuda|cu)[A-Z]/.test(name)) return "CUDA";
  if (/^hip[A-Z]/.test(name)) return "HIP";
  const space = /^([A-Za-z_]\w*)::/.exec(name);
  if (space) return space[1];
  return kind === "annotation" || kind === "input" ? "annotations" : OTHER;
}

/** @param {string} name of a frame @param {string} file */
function packageOf(name, file) {
  if (ownFrame(name)) return "own code";
  const found = PACKAGE.exec(file);
  if (found) return found[1].replace(/\.py$/, "");
  if (/lib\/python3\.\d+\//.test(file) || file.startsWith("<")) return "Python";
  return file.includes("/") ? file.replace(/^\//, "").split("/")[0] : "Python";
}
