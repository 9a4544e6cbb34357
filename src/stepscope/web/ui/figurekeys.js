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
  };
  const show = () => {
    told.textContent = at?.words ?? "";
    if (at) hover(plot, at);
  };
  plot.addEventListener("blur", leave);
  plot.addEventListener("keydown", (event) => {
    if (event.target !== plot || !marks || event.ctrlKey || event.metaKey || event.altKey) return;
    if (KEYS.has(event.key)) at = at ? (marks.next(at, event.key) ?? at) : marks.first;
    else if (event.key === "Escape" && at) leave();
    else if (event.key === "Enter" && at) open(at, options.onClick);
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
      const opens = options.onClick ? " Enter opens one." : "";
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

/** @param {import("./marks.js").Mark} mark @param {((event: any) => void) | undefined} onClick */
function open(mark, onClick) {
  onClick?.({
    points: [{ curveNumber: mark.curve, pointNumber: mark.point, pointIndex: mark.point, x: mark.x, y: mark.y }],
  });
}
