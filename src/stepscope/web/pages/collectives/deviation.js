// Thousands of ranks on one screen: how far each is from its peers, by role and machine, with a bounded number of cells.

export const MOST_ROWS = 64;
const MOST_COLUMNS = 120;
const NODE = 8; // ranks of a machine, where the profile does not say

/** @typedef {{ rank: number, step: number, value: number }} Value */
/** @typedef {{ label: string, ranks: number[] }} Row */
/** @typedef {{ deviation: number, rank: number } | null} Cell */
/** @typedef {{ rows: Row[], columns: { label: string, steps: number[] }[], cells: Cell[][], limit: number }} Grid */

/** Whether single ranks no longer fit on a screen. @param {number} ranks */
export function areMany(ranks) {
  return ranks > MOST_ROWS;
}

/**
 * Each rank's steps against the median of its peers in the same step. A cell has the rank of its row that is farthest from them, by the mean of the
 * cell's steps. `limit` is the same on both sides of the median, and one cell in a hundred is beyond it.
 * @param {Value[]} values @param {number[][]} roles ranks that do the same work @param {number} machines 0 where that is not known
 * @returns {Grid}
 */
export function gridOf(values, roles, machines = 0) {
  const ranks = sorted(values.map((each) => each.rank));
  const steps = sorted(values.map((each) => each.step));
  const role = new Map(roles.flatMap((members, at) => members.map((rank) => /** @type {[number, number]} */ ([rank, at]))));
  const roleOf = (/** @type {number} */ rank) => role.get(rank) ?? 0;
  const far = deviations(values, roleOf);
  const rows = rowsOf(ranks, roleOf, machines ? Math.ceil(ranks.length / machines) : NODE);
  const columns = inRuns(steps, MOST_COLUMNS).map((run) => ({ label: spanWords(run), steps: run }));
  const cells = rows.map((row) => columns.map((column) => farthest(row.ranks, column.steps, far)));
  const sizes = cells.flat().flatMap((cell) => (cell ? [Math.abs(cell.deviation)] : []));
  return { rows, columns, cells, limit: Math.max(0.01, quantile(sizes, 0.99)) };
}

/**
 * Ranks by role and machine; machines next to each other together, where there are too many.
 * @param {number[]} ranks @param {(rank: number) => number} roleOf @param {number} perMachine
 * @returns {Row[]}
 */
function rowsOf(ranks, roleOf, perMachine) {
  const roles = sorted(ranks.map(roleOf));
  const several = roles.length > 1;
  for (let together = perMachine; ; together *= 2) {
    /** @type {Map<string, Row>} */
    const found = new Map();
    for (const rank of ranks) {
      const at = several && roles.length <= MOST_ROWS ? roleOf(rank) : 0;
      const key = `${at} ${Math.floor(rank / together)}`;
      const row = found.get(key) ?? { label: "", ranks: [] };
      row.ranks.push(rank);
      found.set(key, row);
    }
    if (found.size > Math.max(MOST_ROWS, roles.length <= MOST_ROWS ? roles.length : 0)) continue;
    const rows = [...found.values()].sort((a, b) => roleOf(a.ranks[0]) - roleOf(b.ranks[0]) || a.ranks[0] - b.ranks[0]);
    const stage = (/** @type {Row} */ row) => (several ? `stage ${roleOf(row.ranks[0])}, ` : "");
    return rows.map((row) => ({ ...row, label: `${stage(row)}ranks ${spanWords(row.ranks)}` }));
  }
}

/** By rank and step, as a share of the median of the peers. @param {Value[]} values @param {(rank: number) => number} roleOf */
function deviations(values, roleOf) {
  /** @type {Map<string, number[]>} */
  const peers = new Map();
  const place = (/** @type {Value} */ each) => `${roleOf(each.rank)} ${each.step}`;
  for (const each of values) {
    const known = peers.get(place(each));
    if (known) known.push(each.value);
    else peers.set(place(each), [each.value]);
  }
  const medians = new Map([...peers].map(([key, all]) => [key, quantile(all, 0.5)]));
  /** @type {Map<number, Map<number, number>>} */
  const found = new Map();
  for (const each of values) {
    const median = medians.get(place(each)) ?? 0;
    const mine = found.get(each.rank) ?? new Map();
    if (median > 0) mine.set(each.step, each.value / median - 1);
    found.set(each.rank, mine);
  }
  return found;
}

/**
 * @param {number[]} ranks @param {number[]} steps @param {Map<number, Map<number, number>>} far
 * @returns {Cell}
 */
function farthest(ranks, steps, far) {
  /** @type {Cell} */
  let most = null;
  for (const rank of ranks) {
    const mine = steps.flatMap((step) => far.get(rank)?.get(step) ?? []);
    if (!mine.length) continue;
    const deviation = mine.reduce((sum, each) => sum + each, 0) / mine.length;
    if (!most || Math.abs(deviation) > Math.abs(most.deviation)) most = { deviation, rank };
  }
  return most;
}

/** In their order, in at most `most` runs of equal length. @param {number[]} numbers @param {number} most */
function inRuns(numbers, most) {
  const length = Math.max(1, Math.ceil(numbers.length / most));
  return Array.from({ length: Math.ceil(numbers.length / length) }, (_, at) =>
    numbers.slice(at * length, (at + 1) * length),
  );
}

/** @param {number[]} numbers */
function spanWords(numbers) {
  const [first, last] = [numbers[0], numbers[numbers.length - 1]];
  return first === last ? `${first}` : `${first}–${last}`;
}

/** @param {number[]} numbers */
function sorted(numbers) {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** @param {number[]} numbers @param {number} share */
function quantile(numbers, share) {
  const ordered = [...numbers].sort((a, b) => a - b);
  if (!ordered.length) return 0;
  return ordered[Math.min(ordered.length - 1, Math.floor(share * ordered.length))];
}
