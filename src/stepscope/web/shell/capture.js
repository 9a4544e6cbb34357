// Recording from a job that runs: asks for the target, shows the progress, and opens the result.

import { isLeft, makeApi, pause } from "./api.js";
import { fill, h } from "../ui/dom.js";
import { helpLink } from "./help.js";
import { failure, progressBox } from "./notice.js";

const POLL_MS = 500;

/** @param {{ watch: import("./watch.js").Watch, open: (run: string) => void }} options */
export function openCapture(options) {
  const left = new AbortController();
  const api = makeApi(left.signal);
  const target = h("input", {
    id: "capture-target",
    required: true,
    placeholder: "12345 or host:6009",
    autocomplete: "off",
  });
  const jobs = h("div", {}, h("p", { class: "sub" }, "Looking for jobs that listen …"));
  const steps = h("input", { id: "capture-steps", type: "number", min: 1, max: 1000, value: 5 });
  const milliseconds = h("input", { id: "capture-ms", type: "number", min: 100, max: 600000, step: 100, value: 2000 });
  const told = h("div", { "aria-live": "polite" });
  const record = h("button", { type: "submit", class: "main-action" }, "Record");
  const form = h(
    "form",
    {},
    h("h2", { style: { marginTop: "0" } }, "Record from a running job"),
    h(
      "p",
      { class: "sub" },
      "A process of yours that listens (its number), or a profiler server of TensorFlow or JAX (host:port) that the server was started with. ",
      helpLink("capture/listen", "how does a job listen?"),
    ),
    jobs,
    field("capture-target", "job", target),
    field("capture-steps", "steps", steps),
    field("capture-ms", "or milliseconds", milliseconds),
    h("p", { class: "note" }, "Steps are for a process; a profiler server knows none and records for the time given."),
    told,
    h(
      "div",
      { class: "row", style: { justifyContent: "flex-end", margin: "14px 0 0" } },
      h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
      record,
    ),
  );
  const dialog = h("dialog", { "aria-label": "capture" }, form);
  dialog.addEventListener("close", () => {
    left.abort();
    dialog.remove();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void run();
  });

  const run = async () => {
    record.disabled = true;
    const bar = progressBox();
    bar.element.style.margin = "8px auto";
    fill(told, bar.element);
    try {
      const words = target.value.trim();
      const isServer = words.includes(":");
      /** @type {Record<string, string | number>} */
      const wish = isServer
        ? { target: words, duration_ms: Number(milliseconds.value) }
        : { target: words, steps: Number(steps.value) };
      const { id } = await api.post("api/capture", wish);
      const found = await finished(api, id, bar.update);
      await options.watch.refresh();
      dialog.close();
      options.open(found);
    } catch (error) {
      if (!isLeft(error)) fill(told, failure(error));
    } finally {
      record.disabled = false;
    }
  };
  document.body.append(dialog);
  dialog.showModal();
  target.focus();
  api
    .get("api/capture")
    .then(({ targets, servers }) => {
      /** @param {string} chosen */
      const choose = (chosen) => {
        target.value = chosen;
      };
      fill(jobs, listening(targets, choose), named(servers, choose));
      if (targets.length === 1 && !target.value) target.value = String(targets[0].pid);
    })
    .catch((error) => {
      if (!isLeft(error)) fill(jobs, failure(error));
    });
}

/** @param {{ pid: number, step: number | null, rank: number | null, command: string }[]} targets @param {(target: string) => void} choose */
function listening(targets, choose) {
  if (!targets.length) return h("p", { class: "sub" }, "No job on this machine listens at the moment.");
  return h(
    "div",
    { class: "table", style: { maxHeight: "220px", overflowY: "auto" } },
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        targets.map((each) =>
          h(
            "tr",
            {},
            h("td", {}, h("button", { type: "button", onclick: () => choose(String(each.pid)) }, String(each.pid))),
            h("td", {}, each.step === null || each.step === undefined ? "" : `step ${each.step}`),
            h("td", {}, each.rank === null || each.rank === undefined ? "" : `rank ${each.rank}`),
            h("td", { class: "name", "data-tip": each.command }, each.command),
          ),
        ),
      ),
    ),
  );
}

/** The profiler servers that were named when the server started. @param {string[]} servers @param {(target: string) => void} choose */
function named(servers, choose) {
  const buttons = servers.map((each) => h("button", { type: "button", onclick: () => choose(each) }, each));
  return servers.length ? h("p", { class: "row" }, "Profiler servers:", buttons) : null;
}

/** The run that was recorded. @param {import("../types").Api} api @param {string} id @param {(progress: import("../types").Progress | null) => void} onProgress @returns {Promise<string>} */
async function finished(api, id, onProgress) {
  for (;;) {
    const now = await api.get(`api/capture/${id}`);
    onProgress(now.progress ?? null);
    if (now.error)
      throw new Error(
        typeof now.error === "string"
          ? now.error
          : [now.error.what, now.error.where, now.error.fix].filter(Boolean).join(" "),
      );
    if (now.run) return now.run;
    if (now.state === "done") throw new Error("The profile was recorded, but no run in the folders shown has it.");
    await pause(POLL_MS, api.signal);
  }
}

/** @param {string} id @param {string} label @param {HTMLElement} input */
function field(id, label, input) {
  return h("div", { class: "field" }, h("label", { for: id }, label), input);
}
