// Why a recording has no steps, in words.

/** What the capture lacked and what to do about it; files of memory and of hangs lack nothing. @param {import("../types").Report} report */
export function whyNone(report) {
  const missing = report.problems.find((problem) => problem.code === "no-steps");
  return missing
    ? `Nothing marks the steps, and nothing repeats that could be taken for steps. ${missing.fix}`
    : "This recording holds no work that could be divided into steps.";
}
