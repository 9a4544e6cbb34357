// All pages in the order of the navigation; a page's module is loaded when it is first opened.

/** `folder`: where the page's module is below pages/, if it has modules of its own. @typedef {{ name: string, title: string, needsRun: boolean, folder?: string }} Entry */

/** @type {Entry[][]} */
export const GROUPS = [
  [
    { name: "overview", title: "Overview", needsRun: true, folder: "overview" },
    { name: "steps", title: "Steps", needsRun: true },
    { name: "input", title: "Input pipeline", needsRun: true },
    { name: "ops", title: "Ops", needsRun: true },
    { name: "flame", title: "Flame graph", needsRun: true },
    { name: "kernels", title: "Kernels", needsRun: true },
    { name: "device", title: "Device", needsRun: true, folder: "device" },
    { name: "memory", title: "Memory", needsRun: true, folder: "memory" },
    { name: "collectives", title: "Communication", needsRun: true, folder: "collectives" },
    { name: "trace", title: "Trace", needsRun: true },
  ],
  [
    { name: "compare", title: "Compare", needsRun: false, folder: "compare" },
    { name: "doctor", title: "Doctor", needsRun: true },
    { name: "sql", title: "SQL", needsRun: true },
  ],
  [{ name: "runs", title: "Runs", needsRun: false, folder: "runs" }],
];
export const ENTRIES = GROUPS.flat();

/** @param {string} name */
export function entry(name) {
  return ENTRIES.find((each) => each.name === name) ?? null;
}

/** Where a page's module is, from here. @param {string} name */
export function moduleOf(name) {
  const folder = entry(name)?.folder;
  return `../pages/${folder ? `${folder}/` : ""}${name}.js`;
}

/** @param {string} name @returns {Promise<import("../types").Page>} */
export async function load(name) {
  return (await import(moduleOf(name))).page;
}
