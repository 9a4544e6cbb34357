// The keys, in a dialog.

import { h } from "../ui/dom.js";
import { HELP } from "./act/keys.js";

/** @param {HTMLElement} root */
export function showHelp(root) {
  const groups = HELP.map(([title, rows]) => [
    h("h3", {}, title),
    h("dl", {}, rows.map(([keys, meaning]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, meaning)])),
  ]);
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = h("dialog", { "aria-label": "Keys and mouse" }, h("h2", {}, "Keys and mouse"), h("div", { class: "tl-help" }, groups), close);
  dialog.addEventListener("close", () => dialog.remove());
  root.append(dialog);
  dialog.showModal();
}
