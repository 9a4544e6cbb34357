// One view of a page: what it may use, its progress while it waits, its error when it fails, and its end.

import { ApiError, isLeft, makeApi } from "./api.js";
import { fill } from "../ui/dom.js";
import { failure, problem, progressBox } from "./notice.js";
import { load } from "./pages.js";
import { changed, integer, write } from "./route.js";

const SHOW_AFTER_MS = 250; // what is there at once needs no bar

/** Reports that were shown last, by run, rank and state of the files. @type {Map<string, import("../types").Report>} */
const reports = new Map();
const REPORTS = 6;

/**
 * @typedef {object} Shown
 * @property {string} page
 * @property {URLSearchParams} params
 * @property {import("../types").Run | null} about
 * @property {import("../types").State} state
 * @property {import("./watch.js").Watch} watch
 * @property {HTMLElement} root
 * @property {(page: string, params: URLSearchParams, options?: { replace?: boolean, quiet?: boolean }) => void} navigate
 * @property {() => void} again
 * @property {(ranks: number[]) => void} onRanks
 */

/** Draws the page; returns how to end it. @param {Shown} shown */
export function showView(shown) {
  const left = new AbortController();
  /** @type {void | (() => void)} */
  let cleanup;
  const bar = progressBox();
  const room = document.createElement("div");
  room.className = "room";
  fill(shown.root, room);
  shown.root.setAttribute("aria-busy", "true");
  const timer = setTimeout(() => {
    if (!room.childElementCount) shown.root.prepend(bar.element);
  }, SHOW_AFTER_MS);
  const first = new MutationObserver(() => {
    first.disconnect();
    clearTimeout(timer);
    bar.element.remove();
  });
  first.observe(room, { childList: true });
  /** @param {unknown} error */
  const fail = (error) => {
    if (isLeft(error) || left.signal.aborted) return;
    fill(shown.root, isGone(error) ? vanished(shown.about) : failure(error, shown.again));
  };
  const draw = async () => {
    const page = await load(shown.page);
    if (left.signal.aborted) return;
    shown.root.className = page.fills ? "view fills" : "view";
    const context = makeContext(shown, left.signal, bar.update);
    cleanup = await page.render(room, context);
    if (left.signal.aborted && cleanup) cleanup();
  };
  if ((shown.about?.ranks ?? 0) > 1) void tellRanks(shown, left.signal);
  draw()
    .catch(fail)
    .finally(() => {
      clearTimeout(timer);
      if (!left.signal.aborted) shown.root.setAttribute("aria-busy", "false");
    });
  return () => {
    clearTimeout(timer);
    shown.root.setAttribute("aria-busy", "false");
    first.disconnect();
    left.abort();
    if (cleanup) cleanup();
    cleanup = undefined;
  };
}

/** Which ranks there are, for the choice in the header: the list of runs only counts them. @param {Shown} shown @param {AbortSignal} signal */
async function tellRanks(shown, signal) {
  try {
    shown.onRanks((await makeApi(signal).get(`api/runs/${shown.params.get("run")}/ranks`)).ranks);
  } catch {
    // The page itself says what is wrong.
  }
}

/** @param {unknown} error */
function isGone(error) {
  return error instanceof ApiError && (error.status === 404 || error.status === 410);
}

/** What was shown is gone. @param {import("../types").Run | null} about */
export function vanished(about) {
  return problem(
    "warning",
    `${about ? `“${about.name}”` : "This run"} is not there`,
    "Its files were moved or deleted, or the link is of another server. Nothing else is affected.",
    "Choose another run in the list above; the page comes back by itself when the files do.",
  );
}

/**
 * @param {Shown} shown
 * @param {AbortSignal} signal
 * @param {(progress: import("../types").Progress | null) => void} onProgress
 * @returns {import("../types").Context}
 */
function makeContext(shown, signal, onProgress) {
  const api = makeApi(signal, onProgress);
  const run = shown.params.get("run") ?? "";
  const rank = integer(shown.params, "rank");
  let params = shown.params;
  /** @param {import("../types").Changes} changes */
  const kept = (changes) => changed(changed(new URLSearchParams(), { run, rank }), changes);
  return {
    run,
    rank,
    api,
    about: shown.about,
    state: shown.state,
    runs: shown.watch.runs,
    watch: shown.watch,
    get params() {
      return params;
    },
    // What a view wishes after it was left, such as a filter that was just typed, no longer counts.
    setParams: (changes, options = {}) => {
      params = changed(params, changes);
      if (!signal.aborted) shown.navigate(shown.page, params, { ...options, quiet: true });
    },
    go: (page, changes = {}) => {
      if (!signal.aborted) shown.navigate(page, kept(changes));
    },
    link: (page, changes = {}) => write(page, kept(changes)),
    report: async () => {
      const key = `${run} ${rank ?? ""} ${shown.about?.modified_ns ?? ""}`;
      const known = reports.get(key);
      if (known) return known;
      const report = await again(() => api.get(`api/runs/${run}/report`, { rank }));
      reports.set(key, report);
      for (const old of [...reports.keys()].slice(0, -REPORTS)) reports.delete(old);
      return report;
    },
  };
}

/** A profile that has changed is told once, and read anew when asked again. @template T @param {() => Promise<T>} ask */
async function again(ask) {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return ask();
    throw error;
  }
}

/** Forgets what was read, for a profile that has changed. */
export function forget() {
  reports.clear();
}
