// Where the reader was: TensorBoard loads the page anew without its hash whenever it is itself loaded again.

import { parse } from "./route.js";

const KEY = "stepscope.place";

/** For this tab alone: others look at something else. @returns {Storage | null} */
function storage() {
  try {
    return window.sessionStorage;
  } catch {
    return null; // No storage in this frame.
  }
}

/** @param {string} hash @param {Pick<Storage, "setItem"> | null} [room] */
export function remember(hash, room = storage()) {
  try {
    room?.setItem(KEY, hash);
  } catch {
    // Full, or forbidden: then the page begins with its list.
  }
}

/** The place to go back to; empty where there is none, or its run is gone. @param {(run: string) => boolean} isThere @param {Pick<Storage, "getItem"> | null} [room] */
export function recall(isThere, room = storage()) {
  const hash = room?.getItem(KEY) ?? "";
  const run = parse(hash).params.get("run");
  return run === null || isThere(run) ? hash : "";
}
