// The runs that the server knows, asked for again and again while the page is seen.

import { isLeft, makeApi } from "./api.js";

const FIRST_MS = 100; // a server that has just started finds its first runs within moments
const OFTEN_MS = 1200;
const SELDOM_MS = 5000;

/**
 * @typedef {object} Watch
 * @property {() => import("../types").Run[]} runs
 * @property {() => import("../types").Runs} all
 * @property {(id: string) => import("../types").Run | null} find
 * @property {(listener: () => void) => () => void} subscribe
 * @property {() => unknown} trouble  what the last request failed with, or null
 * @property {() => Promise<void>} refresh
 */

/** @returns {Watch} */
export function watchRuns() {
  /** @type {import("../types").Runs} */
  let known = { runs: [], skipped: [], scanning: true };
  /** @type {unknown} */
  let trouble = null;
  /** @type {Set<() => void>} */
  const listeners = new Set();
  let timer = 0;
  let soon = FIRST_MS;
  let asked = 0;
  let told = 0; // which of the questions was answered last
  const api = makeApi(new AbortController().signal);

  const refresh = async () => {
    const mine = ++asked;
    /** @type {import("../types").Runs | null} */
    let found = null;
    /** @type {unknown} */
    let failed = null;
    try {
      found = await api.get("api/runs");
    } catch (error) {
      if (!isLeft(error)) failed = error;
    }
    if (mine < told) return; // a later question was answered sooner
    told = mine;
    known = found ?? known;
    trouble = failed;
    clearTimeout(timer);
    for (const listener of [...listeners]) listener();
    const isMoving = known.scanning || known.runs.some((run) => run.state === "loading");
    timer = window.setTimeout(next, isMoving || trouble ? soon : SELDOM_MS);
    soon = isMoving ? Math.min(OFTEN_MS, 2 * soon) : OFTEN_MS;
  };
  const next = () => {
    if (!document.hidden) void refresh();
  };
  document.addEventListener("visibilitychange", next);
  return {
    runs: () => known.runs,
    all: () => known,
    find: (id) => known.runs.find((run) => run.id === id) ?? null,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    trouble: () => trouble,
    refresh,
  };
}
