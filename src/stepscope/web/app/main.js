// The page: what is in the hash is shown, and what is shown is in the hash.

import { makeApi } from "./api.js";
import { openCapture } from "./capture.js";
import { fill, h } from "./dom.js";
import { makeFrame } from "./frame.js";
import { failure, problem } from "./notice.js";
import { entry } from "./pages.js";
import { changed, integer, parse, write } from "./route.js";
import * as theme from "./theme.js";
import * as tip from "./tip.js";
import { forget, showView, vanished } from "./view.js";
import { watchRuns } from "./watch.js";

/** @param {HTMLElement} root */
async function start(root) {
  theme.start();
  tip.start();
  /** @type {import("../types").State} */
  let state;
  try {
    state = await makeApi(new AbortController().signal).get("api/state");
  } catch (error) {
    fill(
      root,
      h(
        "div",
        { class: "view" },
        failure(error, () => location.reload()),
      ),
    );
    return;
  }
  const watch = watchRuns();
  let end = () => {};
  let shownRun = /** @type {import("../types").Run | null} */ (null);
  let shownHash = "";
  let isVanished = false;

  /** @param {string} page @param {URLSearchParams} params @param {{ replace?: boolean, quiet?: boolean }} [options] */
  const navigate = (page, params, options = {}) => {
    const hash = write(page, params);
    if (hash === shownHash) return;
    if (options.quiet) shownHash = hash;
    if (options.replace) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
    if (!options.quiet) show();
  };
  const here = () => parse(location.hash);
  const frame = makeFrame(
    root,
    watch,
    {
      page: (name) => write(name, kept(here().params, {})),
      run: (id) =>
        write(entry(here().page)?.needsRun ? here().page : "overview", changed(new URLSearchParams(), { run: id })),
      chooseRank: (rank) => navigate(here().page, kept(here().params, { rank })),
      capture: () =>
        openCapture({ watch, open: (run) => navigate("overview", changed(new URLSearchParams(), { run })) }),
    },
    state,
  );

  const show = () => {
    const { page, params } = here();
    const target = entry(page);
    if (!target) {
      const runs = watch.runs();
      const first = runs.length === 1 ? "overview" : "runs";
      history.replaceState(
        null,
        "",
        write(first, changed(params, { run: runs.length === 1 ? runs[0].id : params.get("run") })),
      );
      show();
      return;
    }
    end();
    frame.banner(null);
    shownHash = write(page, params);
    isVanished = false;
    shownRun = watch.find(params.get("run") ?? "");
    frame.show(shownRun, page, integer(params, "rank"));
    document.title = [target.title, shownRun?.name, "stepscope"].filter(Boolean).join(" · ");
    frame.view.className = "view";
    frame.view.parentElement?.scrollTo(0, 0);
    const shown = {
      page,
      params,
      about: shownRun,
      state,
      watch,
      root: frame.view,
      navigate,
      again: show,
      onRanks: (/** @type {number[]} */ ranks) => frame.tellRanks(params.get("run") ?? "", ranks),
    };
    end = target.needsRun && !params.get("run") ? withoutRun(frame.view) : showView(shown);
    if (target.needsRun && params.get("run") && !shownRun && !watch.all().scanning) {
      end();
      end = () => {};
      isVanished = true;
      fill(frame.view, vanished(shown));
    }
  };

  watch.subscribe(() => {
    const { page, params } = here();
    const id = params.get("run") ?? "";
    if (watch.trouble()) {
      frame.banner(
        h(
          "div",
          { class: "banner error", role: "alert" },
          "The server does not answer. Is it still running? This page waits for it.",
        ),
      );
      return;
    }
    const now = watch.find(id);
    if (isVanished && now) show();
    else if (shownRun && !now && !watch.all().scanning && !isVanished) {
      isVanished = true;
      end();
      end = () => {};
      fill(
        frame.view,
        vanished({
          page,
          params,
          about: shownRun,
          state,
          watch,
          root: frame.view,
          navigate,
          again: show,
          onRanks: () => {},
        }),
      );
    } else if (shownRun && now && now.modified_ns !== shownRun.modified_ns)
      frame.banner(
        hasChanged(() => {
          forget();
          show();
        }),
      );
    else {
      frame.banner(null);
      if (!shownRun && now) {
        shownRun = now;
      }
      if (now) frame.show(now, page, integer(params, "rank"));
    }
  });
  addEventListener("hashchange", () => {
    if (location.hash !== shownHash) show();
  });
  addEventListener("popstate", () => {
    if (location.hash !== shownHash) show();
  });
  await watch.refresh();
  show();
}

/** Between pages the run and the rank stay. @param {URLSearchParams} params @param {import("../types").Changes} changes */
function kept(params, changes) {
  return changed(changed(new URLSearchParams(), { run: params.get("run"), rank: params.get("rank") }), changes);
}

/** @param {HTMLElement} root */
function withoutRun(root) {
  fill(
    root,
    problem(
      "info",
      "No run is chosen",
      "This page is about one run.",
      "Choose one in the header, or in the list of runs.",
    ),
    h("p", {}, h("a", { href: "#/runs" }, "All runs")),
  );
  return () => {};
}

/** @param {() => void} reload */
function hasChanged(reload) {
  return h(
    "div",
    { class: "banner warning", role: "status" },
    "The profile has changed since it was read.",
    h("button", { type: "button", onclick: reload }, "Show the new one"),
  );
}

const root = document.getElementById("app");
if (root) void start(root);
