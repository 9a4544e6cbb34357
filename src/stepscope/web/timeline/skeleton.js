// The elements of the viewer: toolbar, minimap, ruler, the headings of the tracks, the picture, and the drawer.

import { h } from "../ui/dom.js";

export const SIDE = 220; // pixels of the headings
export const MINIMAP_HEIGHT = 44;
export const RULER_HEIGHT = 24;

/** @param {string} label @param {string} tip @param {string} [key] */
function button(label, tip, key) {
  return h("button", { type: "button", "data-tip": key ? `${tip} (${key})` : tip, "aria-label": tip }, label);
}

/** @param {HTMLElement} root */
export function build(root) {
  const search = h("input", {
    type: "search", placeholder: "Search the whole trace  /", "aria-label": "Search slices by name, duration or argument, in the whole trace", spellcheck: "false",
    class: "tl-search", maxlength: "300", "data-tip": "A part of a name, /a pattern/, dur>5ms, stream=7, arg:pinned, or several of them",
  });
  const found = h("span", { class: "tl-found", "aria-live": "polite" });
  const filter = h("input", {
    type: "search", placeholder: "Filter tracks", "aria-label": "Show only tracks whose names hold this", spellcheck: "false", class: "tl-filter", maxlength: "200",
  });
  const buttons = {
    previous: button("‹", "The hit before", "Shift+Enter"),
    next: button("›", "The next hit", "Enter"),
    list: h("button", { type: "button", "aria-expanded": "true", disabled: true, "data-tip": "Show or hide the list of hits" }, "List"),
    whole: button("Whole trace", "Show the whole trace", "0"),
    ranks: h("button", { type: "button", hidden: true, "data-tip": "Reads the other ranks and shows all below one another, each group as one row" }, "All ranks"),
    fold: button("Fold all", "Fold all groups and tracks to one row each, or unfold them"),
    download: h("a", { class: "tl-button", "data-tip": "Downloads a Chrome trace: drop it on ui.perfetto.dev or chrome://tracing" }, "Open in Perfetto"),
    help: button("?", "Keys and mouse", "?"),
  };
  const minimap = h("canvas", { class: "tl-minimap", tabindex: "0", role: "slider", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "0", "aria-label": "The whole trace; drag to choose what is shown" });
  const ruler = h("canvas", { class: "tl-ruler", "aria-hidden": "true" });
  const span = h("div", { class: "tl-span" });
  const side = h("div", { class: "tl-side", role: "list", "aria-label": "Tracks" });
  const canvas = h("canvas", { class: "tl-canvas" });
  const overlay = h("div", { class: "tl-overlay", tabindex: "0", role: "application", "aria-label": "Trace. W and S zoom, A and D pan, question mark for all keys." });
  const spacer = h("div");
  const bar = h("div", { class: "tl-bar", tabindex: "-1" }, spacer);
  const drawer = h("section", { class: "tl-drawer", hidden: true, "aria-label": "Details" });
  const grip = h("div", { class: "tl-grip", role: "separator", "aria-orientation": "horizontal", "aria-label": "Height of the details", hidden: true });
  const status = h("div", { class: "tl-status", role: "status", "aria-live": "polite" });
  const nothing = h("p", { class: "tl-message", role: "status", hidden: true });
  const stage = h("div", { class: "tl-stage" }, side, h("div", { class: "tl-picture" }, canvas, overlay), bar, nothing);
  const toolbar = h("div", { class: "tl-toolbar" },
    search, found, buttons.previous, buttons.next, buttons.list, filter, h("span", { class: "tl-grow" }), status, buttons.whole, buttons.ranks, buttons.fold, buttons.download, buttons.help);
  const evidence = {
    back: h("span", {}),
    title: h("b", { class: "tl-of" }),
    place: h("span", { class: "tl-place", role: "status", "aria-live": "polite" }),
    previous: button("‹", "The event before", "P"),
    next: button("›", "The next event", "N"),
    fold: h("button", { type: "button", "aria-expanded": "true", "data-tip": "Show or hide the list of events" }, "List"),
    close: button("✕", "Show all events again"),
    strip: h("div", { class: "tl-strip", hidden: true, role: "group", "aria-label": "Events behind a figure" }),
    list: h("aside", { class: "tl-events", hidden: true, "aria-label": "Events, the worst first", tabindex: "0" }),
  };
  const hits = h("aside", { class: "tl-events tl-hits", hidden: true, "aria-label": "Hits of the search, in the order of time", tabindex: "0" });
  evidence.strip.append(evidence.back, evidence.title, evidence.previous, evidence.place, evidence.next, evidence.fold, evidence.close);
  const frame = h("div", { class: "tl" },
    toolbar,
    evidence.strip,
    h("div", { class: "tl-top" }, h("div", { class: "tl-corner" }, span), h("div", { class: "tl-maps" }, minimap, ruler)),
    h("div", { class: "tl-middle" }, stage, hits, evidence.list), grip, drawer);
  root.append(frame);
  return { frame, search, found, filter, buttons, minimap, ruler, span, side, canvas, overlay, bar, spacer, drawer, grip, status, stage, nothing, evidence, hits };
}

/** @typedef {ReturnType<typeof build>} Elements */
