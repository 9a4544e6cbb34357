// The trace: every event on its track, from the whole recording down to a nanosecond.

/** @type {import("../types").Page} */
export const page = {
  name: "trace",
  title: "Trace",
  fills: true,
  async render(root, context) {
    // Asked for before the viewer itself is here: the server may have to open the profile first.
    const layout = context.api.get(`api/runs/${encodeURIComponent(context.run)}/timeline/layout`, { rank: context.rank });
    layout.catch(() => {}); // told by whoever waits for it
    const viewer = await import("../timeline/viewer.js");
    return viewer.start(root, context, layout);
  },
};
