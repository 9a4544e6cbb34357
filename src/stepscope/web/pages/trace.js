// The trace: every event on its track, from the whole recording down to a nanosecond.

import { h } from "../ui/dom.js";

/** The style sheet of the viewer, loaded with it. */
function style() {
  if (document.querySelector("link[data-timeline]")) return Promise.resolve();
  const link = h("link", { rel: "stylesheet", href: "web/timeline/timeline.css", "data-timeline": "" });
  return /** @type {Promise<void>} */ (new Promise((done) => {
    link.addEventListener("load", () => done());
    link.addEventListener("error", () => done());
    document.head.append(link);
  }));
}

/** @type {import("../types").Page} */
export const page = {
  name: "trace",
  title: "Trace",
  fills: true,
  async render(root, context) {
    // Asked for before the viewer itself is here: the server may have to open the profile first.
    const layout = context.api.get(`api/runs/${encodeURIComponent(context.run)}/timeline/layout`, { rank: context.rank });
    layout.catch(() => {}); // told by whoever waits for it
    const [viewer] = await Promise.all([import("../timeline/viewer.js"), style()]);
    return viewer.start(root, context, layout);
  },
};
