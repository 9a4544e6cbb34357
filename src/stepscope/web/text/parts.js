// The parts of the account in words, as report/parts.py has them (tests/web checks that they agree); report/style.py has their colours.

/** @typedef {{ title: string, meaning: string, isBusy: boolean }} Part */

/** @type {Record<string, Part>} */
export const PARTS = {
  compute: { title: "compute", meaning: "Kernels run on the device.", isBusy: true },
  collective: {
    title: "communication",
    meaning: "The device communicates, and nothing computes meanwhile.",
    isBusy: true,
  },
  copy: { title: "copies", meaning: "The device copies, and nothing else runs meanwhile.", isBusy: true },
  host_compute: { title: "host compute", meaning: "Ops run on the CPU; there is no other device.", isBusy: true },
  input: { title: "input", meaning: "The device waits for the next batch.", isBusy: false },
  dispatch: {
    title: "dispatch",
    meaning: "The framework prepares and launches work more slowly than the device does it.",
    isBusy: false,
  },
  python: {
    title: "Python",
    meaning: "Python code runs for long between two launches, or an op that the host computes.",
    isBusy: false,
  },
  allocator: { title: "allocator", meaning: "The driver allocates or releases memory.", isBusy: false },
  sync: { title: "synchronisation", meaning: "The host waited for the device, so the queue ran dry.", isBusy: false },
  compile: { title: "compilation", meaning: "A compiler or an autotuner runs.", isBusy: false },
  host_collective: { title: "host communication", meaning: "The host communicates with other ranks.", isBusy: false },
  io: { title: "files", meaning: "Checkpoints, logs and other files.", isBusy: false },
  device_gap: { title: "device gaps", meaning: "Work was queued, and the device had not begun it yet.", isBusy: false },
  profiler: { title: "profiler", meaning: "The cost of profiling itself.", isBusy: false },
  unrecorded: { title: "not recorded", meaning: "Work from before the recording was still running.", isBusy: false },
  unexplained: { title: "unexplained", meaning: "No event covers this time.", isBusy: false },
};

/** The part; one that is not known here goes by its name. @param {string} name @returns {Part} */
export function part(name) {
  return PARTS[name] ?? { title: name.replaceAll("_", " "), meaning: "", isBusy: false };
}

/** What keeps the device busy first, then what keeps it idle, the longest first. @param {import("../types").BreakdownRow[]} rows */
export function inOrder(rows) {
  return [...rows].sort((a, b) => Number(part(b.part).isBusy) - Number(part(a.part).isBusy) || b.ns - a.ns);
}

/** The name of what spent the time; where it is, if that is all that is known. @param {string} name @param {string | null | undefined} place */
export function placed(name, place) {
  return place === "end" ? "at the end" : place ? `${place} ${name}` : name;
}
