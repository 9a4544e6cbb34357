// All pages in the order of the navigation; a page's module is loaded when it is first opened.

/** @typedef {{ name: string, title: string, needsRun: boolean }} Entry */

/** @type {Entry[][]} */
export const GROUPS = [
  [
    { name: "overview", title: "Overview", needsRun: true },
    { name: "steps", title: "Steps", needsRun: true },
    { name: "input", title: "Input pipeline", needsRun: true },
    { name: "ops", title: "Ops", needsRun: true },
    { name: "kernels", title: "Kernels", needsRun: true },
    { name: "device", title: "Device", needsRun: true },
    { name: "memory", title: "Memory", needsRun: true },
    { name: "collectives", title: "Communication", needsRun: true },
    { name: "trace", title: "Trace", needsRun: true },
  ],
  [
    { name: "compare", title: "Compare", needsRun: false },
    { name: "doctor", title: "Doctor", needsRun: true },
    { name: "sql", title: "SQL", needsRun: true },
  ],
  [{ name: "runs", title: "Runs", needsRun: false }],
];
export const ENTRIES = GROUPS.flat();

/** @param {string} name */
export function entry(name) {
  return ENTRIES.find((each) => each.name === name) ?? null;
}

/** @param {string} name @returns {Promise<import("../types").Page>} */
export async function load(name) {
  return (await import(`../pages/${name}.js`)).page;
}
