// "How is this computed": the documentation, in a drawer beside what it is about.

import { isLeft, makeApi } from "./api.js";
import { fill, h } from "../ui/dom.js";
import { latest } from "./latest.js";
import { anchor, blocks, linked } from "../ui/markdown.js";
import { failure } from "./notice.js";

/** A link that opens a page of the documentation, such as `report/steps` or `report/steps#outliers`. @param {string} target @param {string} [words] */
export function helpLink(target, words = "how is this computed?") {
  return h("button", { type: "button", class: "help", "data-help": target, onclick: () => openHelp(target) }, words);
}

/** @param {string} target */
export function openHelp(target) {
  const left = new AbortController();
  const body = h("div", { class: "docs" });
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  /** @type {string[]} */
  const trail = [];
  const back = h(
    "button",
    {
      type: "button",
      hidden: true,
      onclick: () => {
        trail.pop();
        void show(trail.pop() ?? target);
      },
    },
    "Back",
  );
  const dialog = h(
    "dialog",
    { class: "drawer", "aria-label": "documentation" },
    h("div", { class: "row" }, back, h("span", { style: { flex: "1" } }), close),
    body,
  );
  dialog.addEventListener("close", () => {
    left.abort();
    dialog.remove();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  const api = makeApi(left.signal);
  const only = latest();
  /** @param {string} place */
  const show = async (place) => {
    const [page, heading = ""] = place.split("#");
    trail.push(place);
    back.hidden = trail.length < 2;
    try {
      const text = new TextDecoder().decode(await only(api.bytes(`api/docs/${page}`)));
      fill(body, elements(text, `${page}.md`, show));
      const found = heading ? body.querySelector(`#${CSS.escape(`doc-${heading}`)}`) : null;
      if (found) found.scrollIntoView();
      else dialog.scrollTop = 0;
    } catch (error) {
      if (!isLeft(error)) fill(body, failure(error));
    }
  };
  document.body.append(dialog);
  dialog.showModal();
  void show(target);
}

/** @param {string} text @param {string} page @param {(place: string) => void} follow */
function elements(text, page, follow) {
  /** @param {import("../ui/markdown.js").Span} span */
  const inline = (span) => {
    if (span.kind === "code") return h("code", {}, span.text);
    if (span.kind === "strong") return h("b", {}, span.text);
    if (span.kind === "text") return span.text;
    if (span.kind === "image") return null; // Pictures are of this very page.
    const target = span.target ?? "";
    const place = linked(page, target);
    if (!place)
      return /^https?:/.test(target)
        ? h("a", { href: target, rel: "noreferrer noopener", target: "_blank" }, span.text)
        : span.text;
    return h(
      "a",
      {
        href: "#",
        onclick: (/** @type {Event} */ event) => {
          event.preventDefault();
          follow(place.heading ? `${place.page}#${place.heading}` : place.page);
        },
      },
      span.text,
    );
  };
  /** @param {import("../ui/markdown.js").Span[]} spans */
  const line = (spans) => spans.map(inline);
  return blocks(text).map((block) => {
    if (block.kind === "heading")
      return h(
        /** @type {"h1"} */ (`h${Math.min(4, block.level)}`),
        { id: `doc-${anchor(block.spans)}` },
        line(block.spans),
      );
    if (block.kind === "code") return h("pre", {}, h("code", {}, block.text));
    if (block.kind === "list")
      return h(
        block.ordered ? "ol" : "ul",
        {},
        block.items.map((item) => h("li", {}, line(item))),
      );
    if (block.kind === "table") {
      const row = (/** @type {import("../ui/markdown.js").Span[][]} */ cells, /** @type {"td" | "th"} */ tag) =>
        h(
          "tr",
          {},
          cells.map((cell) => h(tag, {}, line(cell))),
        );
      return h(
        "div",
        { class: "table" },
        h(
          "table",
          {},
          h("thead", {}, row(block.head, "th")),
          h(
            "tbody",
            {},
            block.rows.map((each) => row(each, "td")),
          ),
        ),
      );
    }
    return h("p", {}, line(block.spans));
  });
}
