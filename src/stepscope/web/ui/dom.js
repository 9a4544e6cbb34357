// Elements out of pieces. Whatever comes from a profile becomes text here: there is no way to pass markup.

/** @typedef {Node | string | number | null | undefined | false} Piece */
/** @typedef {Piece | readonly any[]} Content */

const SVG = "http://www.w3.org/2000/svg";
// Addresses in which a browser would run something, or leave the page unasked.
const SAFE_ADDRESS = /^(#|\.{0,2}\/|https?:|[\w%.-]+(?:[/?#]|$))/i;

/**
 * An element. Attributes: functions are listeners (`onclick`), true and false are present and absent, `null` is absent.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Content} content
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...content) {
  const element = document.createElement(tag);
  attribute(element, attributes);
  append(element, content);
  return element;
}

/**
 * An element of a drawing.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Content} content
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...content) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  attribute(element, attributes);
  append(element, content);
  return element;
}

/**
 * Replaces what is in the element.
 * @param {Element} element
 * @param {...Content} content
 */
export function fill(element, ...content) {
  element.replaceChildren();
  append(element, content);
}

/**
 * Makes these the element's children. Those that stay are not touched: one that is taken out and put back loses the
 * focus, and the click that someone has begun on it.
 * @param {Element} element @param {Element[]} wanted
 */
export function arrange(element, wanted) {
  const kept = new Set(wanted);
  for (const child of [...element.children]) if (!kept.has(child)) child.remove();
  wanted.forEach((child, at) => {
    if (element.children[at] !== child) element.insertBefore(child, element.children[at] ?? null);
  });
}

/** @param {Element} element @param {any[]} content */
function append(element, content) {
  for (const piece of content.flat(Infinity)) {
    if (piece === null || piece === undefined || piece === false) continue;
    element.append(piece instanceof Node ? piece : String(piece));
  }
}

/** @param {Element} element @param {Record<string, any>} attributes */
function attribute(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (name.startsWith("aria-") && typeof value === "boolean") element.setAttribute(name, String(value));
    else if (value === null || value === undefined || value === false) continue;
    else if (name === "style") Object.assign(/** @type {HTMLElement} */ (element).style, value);
    else if (name === "value" && "value" in element) element.value = value;
    else if (name === "href" && !SAFE_ADDRESS.test(String(value))) continue;
    else if (/^on/i.test(name)) throw new TypeError(`${name} wants a function`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}
