// Totals of a range over several ranks, from what the server says of each.

/** @typedef {{ name: string, kind: string, count: number, total_ns: number, self_ns: number, mean_ns: number, max_ns: number }} NameTotal */
/** @typedef {{ title: string, count: number, busy_ns: number, busy_share: number }} TrackTotal */
/** @typedef {{ title: string, busy_share: number }} DeviceTotal */
/** @typedef {NameTotal & { step_ns: number | null, share: number }} PivotRow per step, and of the time on all tracks */
/** @typedef {{ events: number, steps: number | null, names: NameTotal[], names_total: number, tracks: TrackTotal[], devices: DeviceTotal[] }} Totals */

/** One for all ranks; tracks and devices say whose they are. @param {{ rank: number, found: Totals }[]} each @returns {Totals} */
export function joined(each) {
  if (each.length === 1) return each[0].found;
  const names = joinedNames(each.flatMap(({ found }) => found.names));
  return {
    events: each.reduce((sum, { found }) => sum + found.events, 0),
    steps: Math.max(...each.map(({ found }) => found.steps ?? 0)) || null,
    names,
    names_total: Math.max(names.length, ...each.map(({ found }) => found.names_total)),
    tracks: each.flatMap(({ rank, found }) => found.tracks.map((track) => ({ ...track, title: `rank ${rank}: ${track.title}` }))),
    devices: each.flatMap(({ rank, found }) => found.devices.map((device) => ({ ...device, title: `${device.title} of rank ${rank}` }))),
  };
}

/** Rows with what they take in a step, and as a share of the time of all tracks. @param {NameTotal[]} rows @param {number | null} steps in the range @param {number} ns of the range @param {number} tracks in it @returns {PivotRow[]} */
export function pivotRows(rows, steps, ns, tracks) {
  return rows.map((row) => ({ ...row, step_ns: steps ? Math.round(row.total_ns / steps) : null, share: row.total_ns / Math.max(1, ns * Math.max(1, tracks)) }));
}

/** The query for the events of a range. @param {string[]} wheres of each rank */
export function rangeQuery(wheres) {
  const condition = wheres.length === 1 ? wheres[0] : wheres.map((where) => `(${where})`).join("\n   OR ");
  return `SELECT *\nFROM events\nWHERE ${condition}\nORDER BY start_ns, id`;
}

/** @param {NameTotal[]} rows */
export function joinedNames(rows) {
  /** @type {Map<string, NameTotal>} */
  const found = new Map();
  for (const row of rows) {
    const key = `${row.kind} ${row.name}`;
    const known = found.get(key);
    if (!known) {
      found.set(key, { ...row });
      continue;
    }
    known.count += row.count;
    known.total_ns += row.total_ns;
    known.self_ns += row.self_ns;
    known.mean_ns = Math.round(known.total_ns / known.count);
    known.max_ns = Math.max(known.max_ns, row.max_ns);
  }
  return [...found.values()];
}

/** The account of all ranks, summed. @param {{ part: string, ns: number, share: number }[][]} each */
export function joinedParts(each) {
  /** @type {Map<string, number>} */
  const found = new Map();
  for (const row of each.flat()) found.set(row.part, (found.get(row.part) ?? 0) + row.ns);
  const whole = [...found.values()].reduce((sum, ns) => sum + ns, 0) || 1;
  return [...found].map(([name, ns]) => ({ part: name, ns, share: ns / whole }));
}
