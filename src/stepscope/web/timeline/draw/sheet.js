// Bitmaps: those that script writes and the picture takes over, and how canvases get onto the screen.

/** Where its pixels are the screen's, a browser without a GPU copies them as they are instead of filtering each of them. @param {HTMLCanvasElement} canvas @param {number} ratio */
export function copyAsIs(canvas, ratio) {
  canvas.style.imageRendering = ratio === (window.devicePixelRatio || 1) ? "pixelated" : "auto";
}

/** Lines of pixels, used again for every frame. */
export class Sheet {
  /** @param {boolean} isOpaque copied, not blended with what is below, which takes a browser without a GPU half the time */
  constructor(isOpaque) {
    this.canvas = document.createElement("canvas");
    this.ctx = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: !isOpaque, willReadFrequently: true }));
    /** @type {ImageData | null} */
    this.image = null;
    this.pixels = new Uint32Array(0);
    this.width = 0;
  }

  /** Makes room; what the lines hold is what they held before. @param {number} width @param {number} lines */
  room(width, lines) {
    this.width = width;
    if (this.image && this.image.height >= lines && this.image.width === width) return;
    this.canvas.width = width;
    this.canvas.height = Math.max(64, lines + 16);
    this.image = this.ctx.createImageData(width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  /** Hands the first lines over. @param {number} lines */
  put(lines) {
    if (this.image && lines) this.ctx.putImageData(this.image, 0, 0, 0, 0, this.width, lines);
  }
}
