// What to say when there is nothing to show: why, and what to do.

import { ApiError } from "./api.js";
import { h } from "../ui/dom.js";

/** A section without content says why. @param {string} what @param {string} [why] @param {...import("../ui/dom.js").Content} more */
export function empty(what, why = "", ...more) {
  return h("div", { class: "empty" }, h("b", {}, what), why ? ` ${why}` : "", ...more);
}

/** A folder without profiles. */
export function nothingFound() {
  return empty(
    "No profile was found.",
    "Record one into the folder that is served, with your framework's profiler or with ",
    h("code", {}, "stepscope run -- python train.py"),
    ". It appears here by itself.",
  );
}

/** A string of `details` is one paragraph. @param {string} severity @param {string} title @param {string | string[]} details @param {string} [fix] @param {...import("../ui/dom.js").Content} more */
export function problem(severity, title, details, fix = "", ...more) {
  const known = ["error", "warning", "info", "good", "ok"].includes(severity) ? severity : "info";
  return h(
    "div",
    { class: `problem ${known}` },
    h("h3", {}, h("em", {}, severity), `: ${title}`),
    [details].flat().map((each) => (each ? h("p", {}, each) : null)),
    fix ? h("p", { class: "fix" }, fix) : null,
    ...more,
  );
}

/** An error with what to do next. @param {unknown} error @param {(() => void) | null} [again] */
export function failure(error, again = null) {
  const words =
    error instanceof ApiError
      ? error
      : { message: String(error instanceof Error ? error.message : error), where: "", fix: "" };
  const button = again ? h("p", {}, h("button", { type: "button", onclick: again }, "Try again")) : null;
  return h("div", { role: "alert" }, problem("error", words.message, words.where, words.fix, button));
}

/** A progress bar in words and length. */
export function progressBox() {
  const words = h("p", {}, "Loading …");
  const bar = h("progress", { max: 1 });
  const element = h("div", { class: "loading", role: "status" }, words, bar);
  /** @param {import("../types").Progress | null} progress */
  const update = (progress) => {
    if (!progress) return;
    const isCounted = progress.total !== null && progress.total > 0;
    const share = isCounted ? Math.min(1, progress.done / (progress.total ?? 1)) : 0;
    words.textContent = `${progress.stage || "Loading"}${isCounted ? `: ${Math.floor(100 * share)} %` : " …"}`;
    if (isCounted) bar.value = share;
    else bar.removeAttribute("value");
  };
  return { element, update };
}
