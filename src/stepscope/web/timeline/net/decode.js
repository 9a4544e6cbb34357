// Tiles as the server writes them; server/timeline/tiles.py has the layout.

export const BUCKETS = 1024;
export const BLOCK_ROWS = 8;
const VERSION = 1;
const BYTES_OF_ITEM = 20;

/** ns of a unit at a level. @param {number} level */
export function unitOf(level) {
  return 2 ** Math.max(0, level - 8);
}

/** ns of a tile at a level. @param {number} level */
export function tileSpan(level) {
  return 2 ** level * BUCKETS;
}

/** The tiles that a stretch of time touches. @param {number} start @param {number} end @param {number} level */
export function tilesOf(start, end, level) {
  const span = tileSpan(level);
  return { first: Math.floor(start / span), last: Math.max(Math.floor(start / span), Math.ceil(end / span) - 1) };
}

/**
 * The rows of a tile, as views into its bytes.
 * @param {ArrayBuffer} buffer
 * @returns {Map<number, import("../types").TileRow>}
 */
export function decodeTile(buffer) {
  const head = new Uint32Array(buffer, 0, 2);
  if (head[0] !== VERSION) throw new Error(`tiles of version ${head[0]} are not known here: reload the page`);
  const count = head[1];
  const rows = new Uint32Array(buffer, 8, 2 * count);
  let items = 0;
  for (let at = 0; at < count; at += 1) items += rows[2 * at + 1];
  const first = 8 + 8 * count;
  if (buffer.byteLength !== first + BYTES_OF_ITEM * items) throw new Error("a tile is shorter than it says");
  /** @type {Map<number, import("../types").TileRow>} */
  const found = new Map();
  let place = 0;
  for (let at = 0; at < count; at += 1) {
    const length = rows[2 * at + 1];
    /** @param {number} column */
    const offset = (column) => first + 4 * (column * items + place);
    found.set(rows[2 * at], {
      starts: new Int32Array(buffer, offset(0), length),
      durs: new Uint32Array(buffer, offset(1), length),
      ids: new Uint32Array(buffer, offset(2), length),
      labels: new Uint32Array(buffer, offset(3), length),
      counts: new Uint32Array(buffer, offset(4), length),
    });
    place += length;
  }
  return found;
}
