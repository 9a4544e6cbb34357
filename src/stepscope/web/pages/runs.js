// All runs below the folders that were given, and which two to compare.

import { fill, h } from "../ui/dom.js";
import { empty } from "../shell/notice.js";
import { pageHead } from "../ui/pieces.js";
import { runList } from "../shell/runlist.js";

/** @type {import("../types").Page} */
export const page = { name: "runs", title: "Runs", needsRun: false, render };

/** @param {HTMLElement} root @param {import("../types").Context} context */
function render(root, context) {
  /** @type {Set<string>} */
  const chosen = new Set((context.params.get("chosen") ?? "").split(",").filter(Boolean));
  const compare = h(
    "button",
    {
      type: "button",
      onclick: () => {
        const [a, b] = [...chosen];
        context.go("compare", { run: null, a, b });
      },
    },
    "Compare",
  );
  const tell = () => {
    compare.disabled = chosen.size !== 2;
    compare.textContent = chosen.size === 2 ? "Compare the two" : "Tick two runs to compare them";
  };
  tell();
  const list = runList({
    watch: context.watch,
    current: context.run,
    words: context.params.get("search") ?? "",
    onSearch: (search) => context.setParams({ search }, { replace: true }),
    link: (run) => context.link("overview", { run, rank: null }),
    chosen,
    onChoose: () => {
      tell();
      context.setParams({ chosen: [...chosen].join(",") }, { replace: true });
    },
  });
  const places = context.state.places;
  fill(
    root,
    pageHead("Runs", "page/runs"),
    h(
      "p",
      { class: "sub" },
      places.map((place) => h("span", { class: "mono" }, place)),
    ),
    context.state.in_tensorboard && !context.runs().length ? nothing() : null,
    list.element,
  );
  list.element.querySelector(".tools")?.append(h("span", { class: "grow" }), compare);
}

function nothing() {
  return empty(
    "Nothing to show yet.",
    "TensorBoard's folder has no profile that stepscope can read. They appear here by themselves once a run writes one: see “Recording” in the documentation.",
  );
}
