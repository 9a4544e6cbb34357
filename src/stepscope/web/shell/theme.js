// Light or dark: TensorBoard's choice inside TensorBoard, the reader's own elsewhere, the system's at first.

const KEY = "stepscope.theme";
/** @type {Set<() => void>} */
const listeners = new Set();

/** TensorBoard's own document, where this page is a frame in it. */
function tensorboard() {
  try {
    const body = window.parent !== window ? window.parent.document.body : null;
    return body && window.parent.document.querySelector("tb-webapp") ? body : null;
  } catch {
    return null; // Another site's frame.
  }
}

/** Chosen by hand, "light" or "dark", or nothing. */
function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // No storage in this frame.
  }
}

export function isDark() {
  const root = document.documentElement;
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** @param {string | null} theme */
function apply(theme) {
  const root = document.documentElement;
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  else delete root.dataset.theme;
  root.style.colorScheme = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

/** Changes to the other one, and remembers it. */
export function toggle() {
  const theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It lasts as long as the page.
  }
  apply(theme);
}

/** Calls when the colours have changed; returns how to stop. @param {() => void} listener */
export function onThemeChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Follows whoever decides. */
export function start() {
  const body = tensorboard();
  if (body) {
    const follow = () => apply(body.classList.contains("dark-mode") ? "dark" : "light");
    new MutationObserver(follow).observe(body, { attributes: true, attributeFilter: ["class"] });
    follow();
    return;
  }
  apply(remembered());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(remembered()));
}

/** The value of a colour by its name in report/style.py. @param {string} name */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888888";
}
