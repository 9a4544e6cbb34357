// Requests. Every address is relative to the page, so that it works behind any prefix.

import { takeAhead } from "./ahead.js";

const POLL_MS = 350;
const FIRST_POLL_MS = 40; // most answers that are not there at once are there a moment later
const BUSY = 429; // the server has much to do, and will have time again
const PATIENCE = 8;

/** What the server refused, in its words. */
export class ApiError extends Error {
  /** @param {number} status @param {import("../types").ErrorWords} words */
  constructor(status, words) {
    super(words.what);
    this.status = status;
    this.where = words.where ?? "";
    this.fix = words.fix ?? "";
  }
}

/** @param {string} path @param {import("../types").Query} [query] */
export function address(path, query = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    params.set(name, value === true ? "1" : String(value));
  }
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

/** @param {Response} response */
async function refusal(response) {
  /** @type {import("../types").ErrorWords} */
  let words = { what: `The server answered ${response.status} ${response.statusText}`.trim() };
  try {
    const body = await response.json();
    if (body?.error?.what) words = body.error;
    else if (typeof body?.error === "string") words = { what: body.error };
  } catch {
    // Not from us: a proxy, or TensorBoard itself.
  }
  return new ApiError(response.status, words);
}

/** @param {string} url @param {RequestInit} options */
async function asked(url, options) {
  try {
    const ahead = options.method ? undefined : takeAhead(url);
    const answer = await (ahead ?? fetch(url, { credentials: "same-origin", ...options }));
    options.signal?.throwIfAborted(); // a request ahead knows nothing of who takes its answer
    return answer;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, {
      what: "The server does not answer",
      fix: "Is stepscope serve (or TensorBoard) still running? The page goes on as soon as it is.",
    });
  }
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
export function pause(ms, signal) {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        fail(new DOMException("left", "AbortError"));
      },
      { once: true },
    );
  });
}

/** Whether the view was left, which is no error. @param {unknown} error */
export function isLeft(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The secret that changes need; the server writes it into the page. */
export function token() {
  return document.querySelector("meta[name=stepscope-token]")?.getAttribute("content") ?? "";
}

/**
 * @param {AbortSignal} signal
 * @param {(progress: import("../types").Progress | null) => void} [onProgress]
 * @returns {import("../types").Api}
 */
export function makeApi(signal, onProgress = () => {}) {
  /** @param {string} url @param {RequestInit} [options] */
  const answered = async (url, options = {}) => {
    for (let refused = 0, wait = FIRST_POLL_MS; ;) {
      const response = await asked(url, { signal, ...options });
      if (response.status === BUSY && ++refused < PATIENCE) {
        await pause(2 * POLL_MS, signal);
        continue;
      }
      if (!response.ok) throw await refusal(response);
      if (response.status !== 202) return response;
      const body = await response.json();
      onProgress(body.progress ?? null);
      await pause(wait, signal);
      wait = Math.min(POLL_MS, 2 * wait);
    }
  };
  return {
    signal,
    url: address,
    get: async (path, query) => (await answered(address(path, query))).json(),
    bytes: async (path, query) => (await answered(address(path, query))).arrayBuffer(),
    post: async (path, body) => {
      const headers = { "Content-Type": "application/json", "X-Stepscope-Token": token() };
      return (await answered(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
    },
  };
}
