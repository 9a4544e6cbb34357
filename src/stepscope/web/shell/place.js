// Where a page was left: the way back leads to the same scroll and the same row. The browser's history keeps it, also over a reload.

const PATIENCE_MS = 10_000;
const LOOK_EVERY_MS = 60;
const WAITING = "[aria-busy=true], .loading, .of.busy, .wait, .figure:not([data-drawn]):has(> .plot)";

/** @typedef {{ from?: string, scroll?: number, focus?: string | null }} Left */

/** @returns {Left} */
export function leftAs() {
  return /** @type {Left | null} */ (history.state) ?? {};
}

/** Notes the scroll and the focus in the history, before something else is shown. */
export function keepPlace() {
  const main = document.querySelector(".main");
  if (main) history.replaceState({ ...leftAs(), scroll: main.scrollTop, focus: focused() }, "");
}

/** What leads elsewhere and has the focus, by its address. */
function focused() {
  const element = document.activeElement?.closest("[data-to], a[href]");
  return element instanceof HTMLElement ? element.dataset.to ?? element.getAttribute("href") : null;
}

/** Follows a link of the page itself, as a click on it would. @param {string} hash @param {MouseEvent} [event] */
export function follow(hash, event) {
  if (event && (event.ctrlKey || event.metaKey)) {
    window.open(hash, "_blank", "noopener");
    return;
  }
  keepPlace();
  location.hash = hash;
}

/** Every way out of the page passes here. */
export function watchLeaving() {
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("a[href^='#']")) keepPlace();
  }, { capture: true });
  addEventListener("pagehide", keepPlace);
}

/** Brings back what was left, as far as it is drawn, until everything is or the reader moves. @param {HTMLElement} main @param {AbortSignal} left */
export function restorePlace(main, left) {
  const { scroll = 0, focus = null } = leftAs();
  if (!scroll && !focus) return;
  const until = performance.now() + PATIENCE_MS;
  let isOver = false;
  const stop = () => { isOver = true; };
  for (const name of ["wheel", "pointerdown", "keydown"]) addEventListener(name, stop, { once: true, signal: left });
  const look = () => {
    if (isOver || left.aborted || performance.now() > until || isElsewhere(main, focus)) return;
    const isFocused = focus === null || focusOn(main, focus);
    main.scrollTo({ top: scroll, behavior: "instant" });
    const isDrawn = !main.querySelector(WAITING);
    if (isDrawn && isFocused && Math.abs(main.scrollTop - scroll) < 2) return;
    setTimeout(look, LOOK_EVERY_MS);
  };
  look();
}

/** Whether the focus was put on something else meanwhile, as screen readers do. @param {HTMLElement} main @param {string | null} address */
function isElsewhere(main, address) {
  return address !== null && main.querySelector(":focus") !== null && focused() !== address;
}

/** @param {HTMLElement} main @param {string} address */
function focusOn(main, address) {
  const name = CSS.escape(address);
  const found = main.querySelector(`[data-to="${name}"], a[href="${name}"]`);
  if (!(found instanceof HTMLElement)) return false;
  if (document.activeElement === found) return true;
  for (let around = found.closest("details"); around; around = around.parentElement?.closest("details") ?? null) around.open = true;
  found.focus({ preventScroll: true });
  return document.activeElement === found;
}
