// The frame round every page: header with the run and the rank, navigation, and banners.

import { fill, h, svg } from "../ui/dom.js";
import { ENTRIES, GROUPS } from "./pages.js";
import { runList, titleOf } from "./runlist.js";
import { isDark, onThemeChange, toggle } from "./theme.js";

/**
 * @typedef {object} Links
 * @property {(page: string) => string} page
 * @property {(run: string) => string} run
 * @property {(rank: string) => void} chooseRank
 * @property {() => void} capture
 */

/** @param {HTMLElement} root @param {import("./watch.js").Watch} watch @param {Links} links @param {import("../types").State} state */
export function makeFrame(root, watch, links, state) {
  const name = h("b", {}, "choose a run");
  const picker = h(
    "button",
    { type: "button", class: "picker", "aria-haspopup": "dialog", "aria-expanded": "false", onclick: () => openMenu() },
    name,
  );
  const rank = h("select", { "aria-label": "rank", hidden: true, onchange: () => links.chooseRank(rank.value) });
  const theme = h("button", { type: "button", onclick: toggle });
  const tellTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `change to ${isDark() ? "light" : "dark"} colours`);
  };
  tellTheme();
  onThemeChange(tellTheme);
  const capture = state.capture ? h("button", { type: "button", class: "capture", onclick: links.capture }, "Capture …") : null;
  const menu = h(
    "button",
    { type: "button", "aria-label": "show or hide the navigation", onclick: () => root.classList.toggle("narrow") },
    "☰",
  );
  const pages = new Map(ENTRIES.map((each) => [each.name, h("a", {}, each.title)]));
  const groups = GROUPS.map((group, at) => [at ? h("hr", {}) : null, group.map((each) => pages.get(each.name))]);
  const version = h("div", { class: "foot" }, `stepscope ${state.version}`);
  const nav = h("nav", { class: "nav", "aria-label": "pages" }, groups, version);
  const banner = h("div", {});
  const view = h("div", { class: "view", tabindex: -1, id: "view" });
  const main = h("main", { class: "main" }, banner, view);
  fill(
    root,
    h(
      "a",
      {
        class: "skip",
        href: "#view",
        onclick: (/** @type {Event} */ event) => {
          event.preventDefault();
          view.focus();
        },
      },
      "Skip to the page",
    ),
    h(
      "header",
      { class: "head" },
      menu,
      h("a", { class: "brand", href: "#/runs", "aria-label": "stepscope, all runs" }, logo(), h("span", {}, "stepscope")),
      picker,
      rank,
      h("span", { class: "grow" }),
      capture,
      state.in_tensorboard ? null : theme,
    ),
    nav,
    main,
  );

  let shownRun = "";
  let chosenRank = /** @type {number | null} */ (null);
  const openMenu = () => {
    const list = runList({ watch, current: shownRun, link: links.run });
    const box = h("div", { class: "popover", role: "dialog", "aria-label": "runs" }, list.element);
    const close = () => {
      box.remove();
      picker.setAttribute("aria-expanded", "false");
      document.removeEventListener("pointerdown", outside, true);
      removeEventListener("hashchange", close);
    };
    /** @param {Event} event */
    const outside = (event) => {
      if (event.target instanceof Node && !box.contains(event.target)) close();
    };
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        close();
        picker.focus();
      }
    });
    // Also for the run that is shown already, whose link changes nothing.
    box.addEventListener("click", (event) => {
      if (event.target instanceof Element && event.target.closest("a")) close();
    });
    document.addEventListener("pointerdown", outside, true);
    addEventListener("hashchange", close);
    picker.setAttribute("aria-expanded", "true");
    document.body.append(box);
    list.focus();
  };

  /** Which ranks a run has, once it is read; until then they are counted. @type {Map<string, number[]>} */
  const ranks = new Map();
  /** @param {number[]} numbers @param {number | null} chosen */
  const showRanks = (numbers, chosen) => {
    rank.hidden = numbers.length < 2;
    fill(
      rank,
      h("option", { value: "" }, `all ${numbers.length} ranks`),
      numbers.map((each) => h("option", { value: each }, `rank ${each}`)),
    );
    rank.value = chosen === null ? "" : String(chosen);
  };

  /** @param {import("../types").Run | null} run @param {string} page @param {number | null} chosen */
  const show = (run, page, chosen) => {
    shownRun = run?.id ?? "";
    chosenRank = chosen;
    name.textContent = run ? titleOf(run, watch.runs()) : "choose a run";
    picker.dataset.tip = run ? `${run.place}\n${run.name}` : "";
    showRanks(ranks.get(run?.id ?? "") ?? Array.from({ length: run?.ranks ?? 0 }, (_, at) => at), chosen);
    for (const [each, link] of pages) {
      link.setAttribute("href", links.page(each));
      if (each === page) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone the pages are a row that scrolls
      } else link.removeAttribute("aria-current");
    }
  };
  return {
    view,
    show,
    tellRanks: (/** @type {string} */ run, /** @type {number[]} */ numbers) => {
      ranks.set(run, numbers);
      if (run === shownRun) showRanks(numbers, chosenRank);
    },
    /** Which address is drawn, for whoever waits for it: not yet the one that a link has just led to. @param {string} hash */
    tellLink: (hash) => {
      view.dataset.link = hash;
    },
    /** One that is there already stays as it is, also while someone clicks on it. @param {string} name "" for none @param {() => HTMLElement} [make] */
    banner: (name, make) => {
      if (banner.dataset.name === name) return;
      banner.dataset.name = name;
      fill(banner, name && make ? make() : null);
    },
  };
}

function logo() {
  const bar = (
    /** @type {number} */ x,
    /** @type {number} */ y,
    /** @type {number} */ width,
    /** @type {string} */ fill,
  ) => svg("rect", { x, y, width, height: 2.8, rx: 0.8, fill });
  return svg(
    "svg",
    { viewBox: "0 0 16 16", "aria-hidden": "true" },
    bar(1, 2.5, 8, "var(--p-compute)"),
    bar(4, 6.6, 11, "var(--p-input)"),
    bar(2, 10.7, 6, "var(--p-dispatch)"),
  );
}
