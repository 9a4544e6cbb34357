// The page: what is in the hash is shown, and what is shown is in the hash.

import { makeApi } from "./api.js";
import { openCapture } from "./capture.js";
import { fill, h } from "../ui/dom.js";
import { makeFrame } from "./frame.js";
import { failure, nothingFound, problem, progressBox } from "./notice.js";
import { entry } from "./pages.js";
import { keepPlace, leftAs, restorePlace, watchLeaving } from "./place.js";
import { recall, remember } from "./remember.js";
import { changed, integer, parse, write } from "./route.js";
import * as theme from "./theme.js";
import * as tip from "./tip.js";
import { forget, showView, vanished } from "./view.js";
import { watchRuns } from "./watch.js";

/** @param {HTMLElement} root */
async function start(root) {
  theme.start();
  tip.start();
  try {
    const watch = watchRuns();
    const listed = watch.refresh();
    const state = await makeApi(new AbortController().signal).get("api/state");
    await run(root, state, watch, listed);
  } catch (error) {
    const again = () => location.reload();
    fill(root, h("div", { class: "view" }, failure(error, again)));
  }
}

/**
 * @param {HTMLElement} root
 * @param {import("../types").State} state
 * @param {import("./watch.js").Watch} watch
 * @param {Promise<void>} listed  the first look for runs, which began before this
 */
async function run(root, state, watch, listed) {
  // What is shown: its hash, its run as it was then, whether that run is missing, and whether nobody asked for this page.
  let shown = {
    hash: "",
    about: /** @type {import("../types").Run | null} */ (null),
    isMissing: false,
    isDefault: false,
  };
  let end = () => {};
  let left = new AbortController();
  const here = () => parse(location.hash);
  const address = () => write(here().page, here().params);

  /** @param {string} page @param {URLSearchParams} params @param {{ replace?: boolean, quiet?: boolean }} [options] */
  const navigate = (page, params, options = {}) => {
    const hash = write(page, params);
    if (hash === shown.hash) return;
    // Someone has followed a link, which this page is told of a moment later: the view that they leave must not undo that.
    if (options.quiet && address() !== shown.hash) return;
    if (options.replace) history.replaceState(history.state, "", hash);
    else {
      keepPlace();
      history.pushState(options.quiet ? { from: leftAs().from } : null, "", hash);
    }
    if (!options.quiet) {
      show();
      return;
    }
    shown.hash = hash;
    noteLink();
  };
  const noteLink = () => {
    frame.tellLink(location.hash);
    if (state.in_tensorboard) remember(location.hash);
  };
  const frame = makeFrame(root, watch, linksFrom(here, navigate, watch), state);

  const show = () => {
    const { page, params } = here();
    const target = entry(page);
    if (!target) {
      showDefault();
      return;
    }
    end();
    end = () => {};
    left.abort();
    left = new AbortController();
    const before = parse(shown.hash).page;
    if (history.state === null && before && before !== page) history.replaceState({ from: before }, "");
    const id = params.get("run") ?? "";
    const about = watch.find(id);
    const isMissing = target.needsRun && id !== "" && !about;
    shown = { hash: write(page, params), about, isMissing, isDefault: false };
    frame.banner("");
    frame.show(about, page, integer(params, "rank"));
    noteLink();
    document.title = [target.title, about?.name, "stepscope"].filter(Boolean).join(" · ");
    frame.view.className = "view";
    frame.view.parentElement?.scrollTo({ top: 0, behavior: "instant" });
    if (isMissing) fill(frame.view, watch.all().scanning ? looking() : vanished(null));
    else if (target.needsRun && !id) fill(frame.view, ...withoutRun(!watch.runs().length && !watch.all().scanning));
    else {
      const onRanks = (/** @type {number[]} */ ranks) => frame.tellRanks(id, ranks);
      end = showView({ page, params, about, state, watch, root: frame.view, navigate, again: show, onRanks });
      if (frame.view.parentElement) restorePlace(frame.view.parentElement, left.signal);
    }
  };

  /** A single run needs no choice; several have a list. */
  const showDefault = () => {
    const runs = watch.runs();
    const single = runs.length === 1 && !watch.all().scanning ? runs[0].id : null;
    history.replaceState(
      null,
      "",
      write(single ? "overview" : "runs", changed(new URLSearchParams(), { run: single })),
    );
    show();
    shown.isDefault = !single;
  };

  /** The list of runs is new: the shown one may have come, gone or changed. */
  const look = () => {
    if (watch.trouble()) {
      frame.banner("silent", silent);
      return;
    }
    const now = watch.find(here().params.get("run") ?? "");
    const isSettled = !watch.all().scanning;
    const isChanged = shown.about && now && now.modified_ns !== shown.about.modified_ns;
    frame.banner(isChanged ? "changed" : "", () => hasChanged(() => (forget(), show())));
    if (shown.isDefault && isSettled && watch.runs().length) {
      shown.isDefault = false;
      if (watch.runs().length === 1) showDefault();
    } else if (shown.isMissing && (now || isSettled)) {
      if (now) show();
      else fill(frame.view, vanished(shown.about));
    } else if (shown.about && !now && isSettled) {
      end();
      end = () => {};
      shown.isMissing = true;
      fill(frame.view, vanished(shown.about));
    }
  };

  const follow = () => {
    if (address() !== shown.hash) show();
  };
  watchLeaving();
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  await listed;
  if (state.in_tensorboard && !location.hash) {
    const place = recall((id) => watch.all().scanning || watch.find(id) !== null);
    if (place) history.replaceState(null, "", place);
  }
  show();
  watch.subscribe(look);
}

/**
 * Where the frame leads to: between pages the run and the rank stay.
 * @param {() => import("./route.js").Place} here
 * @param {(page: string, params: URLSearchParams) => void} navigate
 * @param {import("./watch.js").Watch} watch
 * @returns {import("./frame.js").Links}
 */
function linksFrom(here, navigate, watch) {
  const only = (/** @type {string} */ run) => changed(new URLSearchParams(), { run });
  const kept = () => changed(only(here().params.get("run") ?? ""), { rank: here().params.get("rank") });
  return {
    page: (name) => write(name, kept()),
    run: (id) => write(entry(here().page)?.needsRun ? here().page : "overview", only(id)),
    chooseRank: (rank) => navigate(here().page, changed(kept(), { rank })),
    capture: () => openCapture({ watch, open: (id) => navigate("overview", only(id)) }),
  };
}

/** @param {boolean} isEmpty  there is none to choose from */
function withoutRun(isEmpty) {
  return [
    isEmpty
      ? nothingFound()
      : problem(
          "info",
          "No run is chosen",
          "This page is about one run.",
          "Choose one in the header, or in the list of runs.",
        ),
    h("p", {}, h("a", { href: "#/runs" }, "All runs")),
  ];
}

function looking() {
  const bar = progressBox();
  bar.update({ stage: "Looking for profiles", done: 0, total: null });
  return bar.element;
}

function silent() {
  const words = "The server does not answer. Is it still running? This page waits for it.";
  return h("div", { class: "banner error", role: "alert" }, words);
}

/** @param {() => void} reload */
function hasChanged(reload) {
  const button = h("button", { type: "button", onclick: reload }, "Show the new one");
  return h("div", { class: "banner warning", role: "status" }, "The profile has changed since it was read.", button);
}

const root = document.getElementById("app");
if (root) void start(root);
