// Figures by Plotly, which is loaded when the first one is drawn. Colours follow the theme; nothing is fetched from elsewhere.

import { fill, h } from "./dom.js";
import { figureKeys } from "./figurekeys.js";
import { helpLink } from "../shell/help.js";
import { colour, onThemeChange } from "../shell/theme.js";

const NARROW = 700; // pixels of the window
const LETTERS_NARROW = 20;

/** @type {Promise<any> | null} */
let loading = null;

/** @returns {Promise<any>} */
function plotly() {
  loading ??= new Promise((done, fail) => {
    if (window.Plotly) {
      done(window.Plotly);
      return;
    }
    const script = h("script", { src: "vendor/plotly.min.js" });
    script.addEventListener("load", () => done(window.Plotly));
    script.addEventListener("error", () => {
      loading = null;
      fail(new Error("Plotly could not be loaded from the server."));
    });
    document.head.append(script);
  });
  return loading;
}

/** Words for Plotly, which would take < and & as markup. @param {string} words */
export function plain(words) {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** How many letters a label beside a bar has room for. @param {number} most */
export function lettersBeside(most) {
  return innerWidth < NARROW ? Math.min(most, LETTERS_NARROW) : most;
}

/** Divides ns for an axis, and names the unit. @param {number} most */
export function timeAxis(most) {
  const [scale, unit] = most >= 1e9 ? [1e9, "s"] : most >= 1e6 ? [1e6, "ms"] : most >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return { scale: Number(scale), unit: String(unit) };
}

/** Divides bytes for an axis, and names the unit. @param {number} most */
export function sizeAxis(most) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = most >= 1 ? Math.min(units.length - 1, Math.floor(Math.log2(most) / 10)) : 0;
  return { scale: 1024 ** at, unit: units[at] };
}

/**
 * @typedef {object} Drawing
 * @property {any[]} data
 * @property {Record<string, any>} [layout]
 *
 * @typedef {object} Options
 * @property {string} title
 * @property {string} unit  what the axes measure, in words
 * @property {string} help  page of the documentation
 * @property {number} [height]
 * @property {string} [note]
 * @property {(colour: (name: string) => string) => Drawing} draw  called again when the colours change
 * @property {(event: any) => void} [onClick]
 * @property {(event: any) => void} [onRange]  the axes were zoomed
 * @property {(event: any) => void} [onSelect]  a range was brushed
 * @property {HTMLElement[]} [tools]
 */

/** @param {Options} options */
export function figure(options) {
  const plot = h(
    "div",
    { class: "plot", style: { height: `${options.height ?? 280}px` } },
    h("p", { class: "wait" }, "Drawing …"),
  );
  const keys = figureKeys(plot, options);
  const element = h(
    "figure",
    { class: "figure" },
    h(
      "header",
      {},
      h("h3", {}, options.title),
      h("small", {}, options.unit),
      options.tools ?? null,
      helpLink(options.help),
    ),
    plot,
    keys.told,
    options.note ? h("p", { class: "note" }, options.note) : null,
  );
  let isDrawn = false;
  let isCleared = false;
  let ended = false;
  let drawing = 0;
  const draw = async () => {
    drawing += 1;
    element.setAttribute("aria-busy", "true");
    try {
      const library = await plotly();
      if (ended || !plot.clientWidth) return;
      const drawing = options.draw(colour);
      /** @type {Record<string, any>} */
      const layout = { ...frame(options.height ?? 280, plot.clientWidth), ...drawing.layout };
      for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key)))
        layout[axis] = { ...axisStyle(), ...layout[axis] };
      // Once only: a second call while the first draws would empty what Plotly takes for drawn.
      if (!isCleared) fill(plot);
      isCleared = true;
      await library.react(plot, drawing.data, layout, CONFIG);
      if (!isDrawn) listen();
      isDrawn = true;
      keys.drawn(drawing.data);
      element.dataset.drawn = "yes";
    } catch (error) {
      isCleared = isDrawn;
      fill(
        plot,
        h("p", { class: "cut" }, `The figure could not be drawn: ${error instanceof Error ? error.message : error}`),
      );
    } finally {
      drawing -= 1;
      element.setAttribute("aria-busy", String(drawing > 0));
    }
  };
  const listen = () => {
    const plotted = /** @type {any} */ (plot);
    if (options.onClick) plotted.on("plotly_click", options.onClick);
    if (options.onRange) plotted.on("plotly_relayout", options.onRange);
    if (options.onSelect) plotted.on("plotly_selected", options.onSelect);
  };
  // Drawn while it has no size, a figure would be wrong: the first size draws it, later ones fit it.
  const sizes = new ResizeObserver(() => {
    if (!element.isConnected) end();
    else if (plot.clientWidth) void draw();
  });
  const unsubscribe = onThemeChange(() => {
    if (isDrawn) void draw();
  });
  const end = () => {
    ended = true;
    sizes.disconnect();
    unsubscribe();
    if (isDrawn) window.Plotly?.purge(plot);
  };
  sizes.observe(plot);
  return Object.assign(element, { redraw: draw });
}

// Plotly offers to upload figures to its maker's site: not from here.
const CONFIG = {
  showSendToCloud: false,
  showEditInChartStudio: false,
  plotlyServerURL: "",
  displaylogo: false,
  responsive: false,
  showTips: false,
  displayModeBar: "hover",
  modeBarButtonsToRemove: ["sendChartToCloud", "sendDataToCloud", "lasso2d", "select2d", "autoScale2d"],
  toImageButtonOptions: { format: "png", scale: 2, filename: "stepscope" },
};

/** @param {number} height @param {number} width */
function frame(height, width) {
  return {
    height,
    width,
    autosize: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: colour("ink") },
    margin: { l: 62, r: 16, t: 30, b: 44 },
    hoverlabel: {
      bgcolor: colour("card"),
      bordercolor: colour("rule"),
      font: { color: colour("ink"), size: 12, family: "system-ui, sans-serif" },
      align: "left",
    },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", traceorder: "normal", font: { size: 12 } },
    modebar: { color: colour("faint"), activecolor: colour("ink"), bgcolor: "rgba(0,0,0,0)" },
    dragmode: "zoom",
    xaxis: {},
    yaxis: {},
  };
}

function axisStyle() {
  return {
    gridcolor: colour("rule"),
    zerolinecolor: colour("rule"),
    linecolor: colour("rule"),
    tickfont: { color: colour("faint"), size: 11 },
    automargin: true,
    exponentformat: "none",
    separatethousands: true,
  };
}
