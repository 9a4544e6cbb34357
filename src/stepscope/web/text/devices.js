// Which devices a figure is of, where a rank has several, as report/wording/devices.py has it.

/** Whether a rank has steps on more than one device: the account is that of one, most sections are over all. @param {import("../types").Report} report */
export function hasSeveralDevices(report) {
  const pairs = new Set(report.steps.rows.map((row) => `${row.rank} ${row.device}`));
  return pairs.size > new Set(report.steps.rows.map((row) => row.rank)).size;
}

/** The device of the account, in words; nothing where there is only one. @param {import("../types").Report} report */
export function chargedDevice(report) {
  if (!hasSeveralDevices(report)) return "";
  const found = Object.values(report.steps.critical_devices);
  return found.length === 1 ? `device ${found[0]}` : "one device of each rank";
}

/** What a share is of; a recording without steps is one window. @param {import("../types").Report} report */
export function ofSteps(report) {
  return report.steps.source === "whole" ? "of the time" : "of step time";
}
