// Names by their number, fetched a page at a time when they are first needed.

import { shortName } from "../../text/names.js";

export const NAMES_OF_PAGE = 1024;
export const NAME_BITS = 0xffffff;
const PAGES_KEPT = 64;

/** The names of one source. */
export class Names {
  /** @param {(page: number) => Promise<string[]>} fetchPage @param {() => void} onArrival */
  constructor(fetchPage, onArrival) {
    this.fetchPage = fetchPage;
    this.onArrival = onArrival;
    /** @type {Map<number, { full: string[], short: string[] } | null>} */
    this.pages = new Map();
  }

  /** @param {number} label */
  short(label) {
    const number = label & NAME_BITS;
    return this.page(number)?.short[number % NAMES_OF_PAGE] ?? null;
  }

  /** @param {number} label */
  full(label) {
    const number = label & NAME_BITS;
    return this.page(number)?.full[number % NAMES_OF_PAGE] ?? null;
  }

  /** @param {number} number */
  page(number) {
    const page = Math.floor(number / NAMES_OF_PAGE);
    const found = this.pages.get(page);
    if (found === undefined) this.load(page);
    return found ?? null;
  }

  /** @param {number} page */
  async load(page) {
    this.pages.set(page, null);
    try {
      const full = await this.fetchPage(page);
      this.pages.set(page, { full, short: full.map(shortName) });
      const oldest = this.pages.keys().next().value;
      if (this.pages.size > PAGES_KEPT && oldest !== undefined) this.pages.delete(oldest);
      this.onArrival();
    } catch {
      this.pages.delete(page); // Asked for again by the next frame that needs it.
    }
  }
}
