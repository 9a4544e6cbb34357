// A place in the program: function, file and line, and the code around it where the server may show it.

import { isLeft } from "../shell/api.js";
import { fill, h } from "./dom.js";

/** @param {import("../types").Context} context @param {import("../types").Place} place */
export function sourceOf(context, place) {
  const words = h("code", { class: "place" }, `${place.function} (${place.file}:${place.line})`);
  if (!context.state.sources) return h("div", { class: "source" }, words);
  const room = h("div", {});
  void show(context, place, room);
  return h("div", { class: "source" }, words, room);
}

/** @param {import("../types").Context} context @param {import("../types").Place} place @param {HTMLElement} room */
async function show(context, place, room) {
  try {
    const found = await context.api.get("api/source", { file: place.file, line: place.line });
    fill(room, listing(found, place.line));
  } catch (error) {
    if (!isLeft(error)) fill(room, h("small", { class: "sub" }, "The file is not below the folders of --source."));
  }
}

/** @param {{ first: number, lines: string[] }} found @param {number} line */
function listing(found, line) {
  const rows = found.lines.map((text, at) => {
    const number = found.first + at;
    return h(number === line ? "mark" : "span", {}, `${String(number).padStart(5)}  ${text}\n`);
  });
  return h("pre", { class: "lines", tabindex: 0, "aria-label": "source code" }, rows);
}
