/** Types of the trace viewer; checked by tsc, never shipped to a browser. Times are ns since the shown rank's trace begins, so that doubles hold
 * them exactly down to fractions; those of the server are ns of a rank's own clock: `Source.shift` is the difference. */

export interface TrackShown { id: number; title: string; detail: string; what: string; row: number; rows: number; events: number }

/** `merged` is the row that shows all streams of a device as one; processes have none. */
export interface GroupShown { id: string; title: string; what: string; device: number | null; tracks: TrackShown[]; merged?: number | null }

export interface Layout {
  key: string; rank: number; ranks: number[]; shift_ns: number; start_ns: number; end_ns: number;
  base_unix_ns: string | null; events: number; events_of_all: number; rows: number; names: number; groups: GroupShown[];
  layers: string[];
  /** The rank on whose clock the events were put, where a shift alone does not do. */
  moved: number | null;
  clock: ClockShown | null;
}

/** How a rank was put beside the shown one, and how far matching collectives still end apart. */
export interface ClockShown { aligned_by: "collectives" | "recorded" | "begin"; offset_ns: number; residual_ns: number | null; collectives: number; drift_ppm: number }

export interface CounterShown { id: string; title: string; unit: string; group: string | null; detail: string }

export interface LayerRow { row: number; title: string; detail: string }

/** Where slices come from: the events of a rank, or rows derived from them. */
export interface Source {
  /** Unlike any other's. */
  id: string;
  /** What its requests carry: key, rank, layer. */
  query: Record<string, string | number>;
  /** Added to its times to have those of the picture. */
  shift: number;
  rank: number;
  layer: string;
}

/** The items of one row in one tile; times in units of the tile from its begin. */
export interface TileRow {
  starts: Int32Array; durs: Uint32Array; ids: Uint32Array; labels: Uint32Array; counts: Uint32Array;
}

/** Eight rows at one level of detail. */
export interface Block { begin: number; unit: number; end: number; rows: (TileRow | undefined)[]; bytes: number }

export interface CounterTile { begin: number; step: number; places: Int32Array; lows: Float32Array; highs: Float32Array; lasts: Float32Array }

export type LineKind = "rank" | "group" | "track" | "counter" | "note";

/** A horizontal band of the picture. */
export interface Line {
  kind: LineKind;
  /** Stays the same however lines are sorted, folded and pinned. */
  key: string;
  title: string;
  detail: string;
  y: number;
  height: number;
  /** The first row of the source, and how many of its rows are shown. */
  row: number;
  rows: number;
  allRows: number;
  source: Source | null;
  counter: CounterShown | null;
  folded: boolean;
  pinned: boolean;
  events: number;
  track: number | null;
  /** Of a group its tracks. */
  inside: number[];
  /** Of a heading, where what lies below it ends. */
  end: number;
}

/** A slice under the pointer. */
export interface Hit { source: Source; row: number; id: number; start: number; dur: number; label: number; count: number; line: Line }

/** A slice that is selected. */
export interface Chosen { rank: number; layer: string; id: number; start: number; dur: number; row: number; track: number | null }

export interface Range { start: number; end: number; tracks: { rank: number; track: number }[] }

export interface LinkShown {
  why: string; direction: "to" | "from"; id: number; name: string; track: number; row: number; after_ns: number; dur_ns: number;
}

export interface EventShown {
  /** `after_ns` the layout's `start_ns`, which is exact; `start_ns` itself may be more than a double holds. */
  id: number; name: string; kind: string; role: string | null; category: string | null; start_ns: number; after_ns: number; dur_ns: number;
  self_ns: number; children: number; step: number | null; track: number; row: number; depth: number; thread: string;
  stack: { id: number; name: string; kind: string }[]; launch_stack: { id: number; name: string; kind: string }[]; facts: Record<string, Record<string, any>>; links: LinkShown[];
  links_total: number; op: { id: number; name: string } | null;
}

/** What an event waited for, or what waited for it: see server/timeline/waits.py. */
export interface WaitShown {
  why: string; id: number; name: string; track: number; row: number; after_ns: number; dur_ns: number; ns: number; decides: boolean;
}
export interface WaitsShown {
  before: WaitShown[]; after: WaitShown[];
  path: { ns: number; step: number | null; id: number; before: { id: number; name: string } | null; after: { id: number; name: string } | null } | null;
}

/** A collective on one of several ranks; `start_ns` on the clock of the shown one. */
export interface CallShown { rank: number; id: number; track: number; row: number; after_ns: number; dur_ns: number; start_ns: number }

/** A hit of the search, and a page of them in the order of time; `total` counts all. */
export interface HitListed { id: number; name: string; after_ns: number; dur_ns: number; step: number | null }
export interface HitsListed { total: number; first: number; hits: HitListed[] }

/** One of the events behind a figure. `after_ns` and `dur_ns` are of the time that counts, which may be less than the event; `id` is null where no event explains it. */
export interface EventFound {
  rank: number; id: number | null; name: string; thread: string; step: number | null; weight: number; after_ns: number; dur_ns: number; row: number | null;
}

/** All of them, the worst first; `names` has the numbers of their names by rank, `span` the interval that was asked for. */
export interface EventsFound {
  kind: string; name: string; title: string | null; unit: "ns" | "bytes"; by: string; total: number; events: EventFound[]; names: Record<string, number[]>;
  span: { rank: number; after_ns: number; dur_ns: number } | null; ranks: number[]; ranks_total: number;
}
