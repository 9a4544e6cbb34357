// Figures by keyboard: arrow keys go through the marks and say what each is, Enter does what a click does.

import { h } from "./dom.js";
import { KEYS, marksOf } from "./marks.js";

/**
 * @param {HTMLElement} plot  what Plotly draws into
 * @param {{ title: string, onClick?: (event: any) => void }} options
 */
export function figureKeys(plot, options) {
  const told = h("p", { class: "told", "aria-live": "polite" });
  /** @type {import("./marks.js").Marks | null} */
  let marks = null;
  /** @type {import("./marks.js").Mark | null} */
  let at = null;
  plot.tabIndex = 0;
  plot.setAttribute("role", "application");
  const leave = () => {
    at = null;
    told.textContent = "";
    window.Plotly?.Fx.unhover(plot);
    outline(plot, null);
  };
  const show = () => {
    told.textContent = at?.words ?? "";
    if (!at) return;
    if (at.id === undefined) hover(plot, at);
    else outline(plot, at.id);
  };
  plot.addEventListener("blur", leave);
  plot.addEventListener("keydown", (event) => {
    if (event.target !== plot || !marks || event.ctrlKey || event.metaKey || event.altKey) return;
    if (KEYS.has(event.key)) at = at ? (marks.next(at, event.key) ?? at) : marks.first;
    else if (event.key === "Escape" && at) leave();
    else if (event.key === "Enter" && at) open(plot, at, options.onClick);
    else return;
    event.preventDefault();
    event.stopPropagation();
    show();
  });
  return {
    told,
    /** What is drawn now. @param {any[]} data */
    drawn: (data) => {
      marks = marksOf(data);
      // Drawn anew, for another size or theme: whoever goes through the marks stays where they are.
      at = at && marks.same(at);
      if (at) show();
      const opens = options.onClick ? " Enter opens one." : data[0]?.type === "icicle" ? " Enter zooms." : "";
      plot.setAttribute("aria-label", `${options.title}: ${marks.count} marks. Arrow keys go through them.${opens}`);
    },
  };
}

/** @param {HTMLElement} plot @param {import("./marks.js").Mark} mark */
function hover(plot, mark) {
  try {
    window.Plotly?.Fx.hover(plot, [{ curveNumber: mark.curve, pointNumber: mark.point }]);
  } catch {
    // The words below the figure say it all the same.
  }
}

/** The box of a tree, which Plotly marks only below the mouse. @param {HTMLElement} plot @param {string} id */
function box(plot, id) {
  const idOf = (/** @type {any} */ drawn) => drawn.__data__?.data?.data?.id ?? drawn.__data__?.data?.id;
  return [...plot.querySelectorAll("g.slice")].find((each) => idOf(each) === id);
}

/** @param {HTMLElement} plot @param {string | null} id */
function outline(plot, id) {
  for (const each of plot.querySelectorAll("g.slice.at")) each.classList.remove("at");
  if (id !== null) box(plot, id)?.classList.add("at");
}

/** @param {HTMLElement} plot @param {import("./marks.js").Mark} mark @param {((event: any) => void) | undefined} onClick */
function open(plot, mark, onClick) {
  if (mark.id !== undefined) box(plot, mark.id)?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  else
    onClick?.({
      points: [{ curveNumber: mark.curve, pointNumber: mark.point, pointIndex: mark.point, x: mark.x, y: mark.y }],
    });
}
