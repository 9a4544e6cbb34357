// Names cut to the room there is; how wide a name is gets measured once.

export const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const MOST = 20_000;

/** Fits names into widths. */
export class Labels {
  /** @param {(text: string) => number} measure */
  constructor(measure) {
    this.measure = measure;
    /** @type {Map<string, number>} */
    this.widths = new Map();
    /** @type {Map<string, string>} */
    this.cuts = new Map();
  }

  /** @param {string} text */
  width(text) {
    let found = this.widths.get(text);
    if (found === undefined) {
      if (this.widths.size > MOST) this.widths.clear();
      found = this.measure(text.length > 400 ? text.slice(0, 400) : text);
      this.widths.set(text, found);
    }
    return found;
  }

  /** As much of the text as fits, "" if that would say nothing. @param {string} text @param {number} room pixels */
  fit(text, room) {
    const whole = this.width(text);
    if (whole <= room) return text;
    let letters = Math.floor((room / whole) * Math.min(text.length, 400)) - 1;
    while (letters >= 2 && this.width(this.cut(text, letters)) > room) letters -= 1;
    return letters < 2 ? "" : this.cut(text, letters);
  }

  /** @param {string} text @param {number} letters */
  cut(text, letters) {
    const key = `${letters}:${text}`;
    let found = this.cuts.get(key);
    if (found === undefined) {
      if (this.cuts.size > MOST) this.cuts.clear();
      found = `${text.slice(0, letters).trimEnd()}…`;
      this.cuts.set(key, found);
    }
    return found;
  }
}
