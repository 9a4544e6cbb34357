// The stretch of time that is shown. Times are ns as doubles: exact up to 2**53, which is a hundred days; they begin with the trace.

export const SHORTEST_NS = 16;

/** Time on a line of pixels: what is shown, and the limits within which it moves. */
export class Viewport {
  /** @param {number} low @param {number} high */
  constructor(low, high) {
    this.low = low;
    this.high = Math.max(high, low + 1);
    this.start = this.low;
    this.end = this.high;
    this.width = 1;
  }

  get span() {
    return this.end - this.start;
  }

  /** ns of one pixel. */
  get scale() {
    return this.span / this.width;
  }

  /** @param {number} time */
  x(time) {
    return ((time - this.start) / this.span) * this.width;
  }

  /** @param {number} x */
  time(x) {
    return this.start + (x / this.width) * this.span;
  }

  /** Shows this, as far as the limits allow: a little may be empty on either side. @param {number} start @param {number} end */
  show(start, end) {
    if (!Number.isFinite(start) || !Number.isFinite(end)) return;
    const whole = this.high - this.low;
    const most = Math.max(whole * 1.1, SHORTEST_NS);
    const span = Math.min(Math.max(end - start, SHORTEST_NS), most);
    const middle = (start + end) / 2;
    const room = Math.max(0, Math.min(span * 0.5, (most - span) / 2 + whole * 0.05));
    const first = Math.min(Math.max(middle - span / 2, this.low - room), Math.max(this.low - room, this.high + room - span));
    this.start = first;
    this.end = first + span;
  }

  /** The whole trace. */
  reset() {
    const edge = (this.high - this.low) * 0.01;
    this.show(this.low - edge, this.high + edge);
  }

  /** @param {number} factor below 1 comes closer @param {number} x stays where it is */
  zoom(factor, x) {
    const fixed = this.time(x);
    const span = Math.min(Math.max(this.span * factor, SHORTEST_NS), (this.high - this.low) * 1.1);
    const share = x / this.width;
    this.show(fixed - span * share, fixed + span * (1 - share));
  }

  /** @param {number} pixels */
  pan(pixels) {
    const by = pixels * this.scale;
    this.show(this.start + by, this.end + by);
  }

  /** Brings a slice into view; if it already is in the middle, it fills the view. @param {number} start @param {number} end */
  focus(start, end) {
    const middle = (start + end) / 2;
    const length = Math.max(end - start, SHORTEST_NS);
    const { start: before, span } = this;
    this.show(middle - span / 2, middle + span / 2);
    // As central as the ends of the trace allow, and it was so before.
    const isCentred = Math.abs(this.start - before) < span * 0.02;
    if (isCentred || length > span) this.show(start - length * 0.1, end + length * 0.1);
  }

  /** Moves no more than needed for these times to be seen. @param {number} start @param {number} end */
  reveal(start, end) {
    if (start >= this.start && end <= this.end) return;
    if (end > this.start && start < this.end && end - start > this.span * 0.5) return;
    const span = Math.max(this.span, (end - start) * 1.2);
    const middle = (start + end) / 2;
    this.show(middle - span / 2, middle + span / 2);
  }

  /** The level of detail whose buckets are nearest to a pixel. @param {number} ratio device pixels of a pixel */
  level(ratio = 1) {
    return Math.min(44, Math.max(0, Math.round(Math.log2(this.scale / ratio))));
  }
}
