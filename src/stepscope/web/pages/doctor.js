// What is wrong with this profile, what was looked at, and what could not be.

import { isLeft } from "../shell/api.js";
import { fill, h } from "../ui/dom.js";
import { eventsLink } from "../ui/events.js";
import { many } from "../text/format.js";
import { failure, problem } from "../shell/notice.js";
import { pageHead } from "../ui/pieces.js";

const ORDER = ["error", "warning", "info"];

/** @type {import("../types").Page} */
export const page = { name: "doctor", title: "Doctor", render };

/** @param {HTMLElement} root @param {import("../types").Context} context */
async function render(root, context) {
  const found = await context.api.get(`api/runs/${context.run}/doctor`);
  const machine = h(
    "div",
    { style: { marginTop: "18px" } },
    h("button", { type: "button", onclick: () => examine() }, "Look at the machine that serves this page, too"),
  );
  const examine = async () => {
    fill(machine, h("p", { class: "sub wait" }, "Looking …"));
    try {
      fill(
        machine,
        h("h2", {}, "The machine that serves this page"),
        ...listed(await context.api.get("api/doctor"), "this machine", () => null),
      );
    } catch (error) {
      if (!isLeft(error)) fill(machine, failure(error, examine));
    }
  };
  fill(
    root,
    pageHead("Doctor", "page/doctor"),
    h("p", { class: "sub mono" }, found.subject),
    ...listed(found, "the profile", (code) => (found.with_events?.includes(code) ? eventsLink(context, "problem", code) : null)),
    machine,
  );
}

/** @param {string | null} address of the events that a problem is about */
function toEvents(address) {
  return address && h("a", { href: address }, "its events in the trace");
}

/** @param {any} found @param {string} what @param {(code: string) => string | null} eventsOf */
function listed(found, what, eventsOf) {
  const results = [...found.results].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  const serious = results.filter((each) => each.severity !== "info").length;
  const verdict = serious
    ? `${many(serious, "problem")} with ${what}.`
    : `Nothing is wrong with ${what}${results.length ? `; ${many(results.length, "note")}` : ""}.`;
  return [
    h("p", { class: "verdict" }, verdict),
    results.map((each) =>
      problem(
        each.severity,
        each.title,
        [each.evidence, each.cause],
        each.fix,
        h("p", { class: "note" }, h("code", {}, each.code), " ", toEvents(eventsOf(each.code))),
      ),
    ),
    h(
      "details",
      {},
      h("summary", {}, `${many(found.passed.length, "check")} passed`),
      h("p", { class: "mono sub" }, found.passed.join(", ")),
    ),
    found.not_looked_at.length
      ? h(
          "details",
          {},
          h("summary", {}, `${many(found.not_looked_at.length, "check")} could not be made`),
          h(
            "dl",
            {},
            found.not_looked_at.map((/** @type {any} */ each) => [
              h("dt", { class: "mono" }, each.code),
              h("dd", {}, each.reason),
            ]),
          ),
        )
      : null,
    Object.keys(found.facts ?? {}).length
      ? h(
          "details",
          {},
          h("summary", {}, "facts"),
          h(
            "dl",
            {},
            Object.entries(found.facts).map(([name, value]) => [
              h("dt", {}, name),
              h("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value)),
            ]),
          ),
        )
      : null,
  ];
}
