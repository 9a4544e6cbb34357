// Tips: the browser's own come late and small, so ours take their words from `data-tip`.

import { h } from "../ui/dom.js";

/** One tip for the whole page, for the pointer and for the keyboard. */
export function start() {
  const tip = h("div", { class: "tip", role: "tooltip" });
  document.body.append(tip);
  /** @param {string} words @param {number} x @param {number} y */
  const show = (words, x, y) => {
    tip.textContent = words;
    tip.style.visibility = words ? "visible" : "hidden";
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${y + 20 + height > innerHeight ? Math.max(4, y - height - 12) : y + 20}px`;
  };
  const hide = () => {
    tip.style.visibility = "hidden";
  };
  /** @param {EventTarget | null} target */
  const wordsOf = (target) =>
    (target instanceof Element ? target.closest("[data-tip]")?.getAttribute("data-tip") : null) ?? "";
  /** Where the keyboard is, the tip may be that of a cell in the row, or of the words beside the button. @param {Element} target */
  const wordsNear = (target) => {
    const near = target.querySelector("[data-tip]") ?? target.closest("li, tr, [role=listitem]")?.querySelector("[data-tip]");
    return wordsOf(target) || near?.getAttribute("data-tip") || "";
  };
  document.addEventListener("pointermove", (event) => {
    const words = wordsOf(event.target);
    if (words) show(words, event.clientX, event.clientY);
    else hide();
  });
  document.addEventListener("focusin", (event) => {
    if (!(event.target instanceof Element) || !event.target.matches(":focus-visible")) return;
    const words = wordsNear(event.target);
    if (!words) return;
    const box = event.target.getBoundingClientRect();
    show(words, box.left, box.bottom - 14);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("pointerleave", hide);
  document.addEventListener("scroll", hide, true);
}
