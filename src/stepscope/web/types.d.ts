/** Types that several modules share; checked by tsc, never shipped to a browser. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Progress { stage: string; done: number; total: number | null }

export interface ErrorWords { what: string; where?: string | null; fix?: string | null }

export interface Run {
  id: string;
  name: string;
  place: string;
  format: string;
  files: number;
  bytes: number;
  /** How many; which they are, the report tells. */
  ranks: number;
  modified_ns: number;
  state: "new" | "loading" | "ready" | "failed";
  progress: Progress | null;
  error: ErrorWords | string | null;
}

export interface State {
  version: string;
  places: string[];
  scanning: boolean;
  capture: boolean;
  in_tensorboard: boolean;
  /** Whether lines of code may be asked for. */
  sources: boolean;
}

export interface Runs { runs: Run[]; skipped: { path: string; reason: string }[]; scanning: boolean }

/** The list of runs in figures; docs: server/runs/dashboard.py. */
export interface Board {
  figures: Record<string, RunFigures>; jobs: Record<string, string>; changes: Record<string, RunChange>; waiting: string[];
}

export interface RunFigures {
  step_ns: number | null; basis: string; steps: number; p90_ns: number | null; busy_share: number | null; mfu: number | null;
  parts: Record<string, number>; findings: number; problems: number; peak_bytes: number | null; capacity_bytes: number | null;
  finding: (Interval & { code: string; title: string; is_advice: boolean }) | null; devices: string; framework: string | null;
  ranks: number; recorded_unix_ns: number | null; commit: string | null; noise: { mean_ns: number; error_ns: number } | null;
}

export interface RunChange {
  since: string; before_ns: number; difference_ns: number; margin_ns: number; verdict: "slower" | "faster" | "same";
}

export interface Column { name: string; title: string; unit: string; kind: string; numeric: boolean; minor: boolean }

export interface TablePage { columns: Column[]; rows: any[][]; total: number; matching: number }

export interface NamedTime { name: string; thread: string | null; ns: number; detail: string | null; place: string | null }

export interface BreakdownRow {
  part: string; ns: number; share: number; names: NamedTime[]; names_total: number; named_share: number; end_ns: number;
}

export interface StepRow {
  rank: number; device: number | null; step: number; start_ns: number; duration_ns: number;
  parts: Record<string, number>; partial: boolean; outlier: boolean;
}

export interface Finding {
  code: string; class: string; title: string; detail: string; evidence: Record<string, any>; share: number;
  saves_ns_per_step: number; speedup: Interval; left_ns_per_step: Interval | null; certainty: number; where: Place[];
  fix: string; page: string;
}

export interface Interval { low: number; mid: number; high: number; }

export interface Place { file: string; line: number; function: string; 
}

export interface Problem {
  code: string; severity: string; title: string; detail: string; cause: string; fix: string; rank: number | null; count: number;
}

export interface MemoryDevice {
  device: number | null; device_kind: string; source: string; peak_bytes: number | null; peak_at_ns: number | null;
  reserved_peak: number | null; capacity_bytes: number | null;
  timeline: { time_ns: number; allocated: number | null; reserved: number | null }[];
  at_peak: { kind: string; op: string | null; scope: string | null; bytes: number }[]; at_peak_total: number;
  growth_bytes_per_step: number | null; never_freed_bytes: number | null; fragmentation: number | null;
  known_share: number | null; note: string; rank: number | null;
}

/** stepscope.report/2, as far as the pages read it; docs/report/schema.json has all of it. */
export interface HangCall {
  ranks: number[]; state: string; group: string | null; op: string | null; sequence: number | null; sizes: string | null;
  dtype: string | null; function: string | null; place: string | null; stack: string[];
}

export interface Report {
  schema: string;
  profile: {
    path: string; name: string; framework: string | null; format: string; ranks: number[]; examined?: number[]; world_size: number | null;
    devices: { name: string; count?: number; used?: number }[]; duration_ns: number; events: number; files: string[];
    versions: Record<string, any>; hosts: string[]; capture_options: Record<string, any>; recorded_unix_ns: number | null;
  };
  job?: { roles: { stage: number; ranks: number[] }[]; causes: { kind: string; ranks: number[]; since: number | null }[] } | null;
  problems: Problem[];
  hang: {
    kind: string | null; sentence: string; culprits: number[]; ranks: HangCall[];
    groups: { name: string; ranks: number[]; kind: string; sequence: number; waiting: number[]; culprits: number[]; sentence: string; calls: HangCall[] }[];
  };
  steps: {
    source: string; name: string | null; count: number; median_ns: number | null; mean_ns: number | null;
    p10_ns: number | null; p90_ns: number | null; min_ns: number | null; max_ns: number | null;
    inflation: number | null; inflation_source: string | null; estimated_ns?: number | null; partial: number; outliers: number;
    critical_devices: Record<string, number | null>; rows: StepRow[];
    confidence?: string | null; covers?: number | null; warm_up?: string | null; warm_ups?: number;
    basis: string; basis_ns: number | null; sentence: string; region: string | null; regions: string[];
  };
  breakdown: BreakdownRow[];
  phases: { name: string; calls: number; total_ns: number; share: number; parts: Record<string, number> }[];
  findings: Finding[];
  sentence: string;
  input: {
    share: number; exposed_share: number; verdict: string; stages_total: number;
    stages: { name: string; kind: string; total_ns: number; self_ns: number; calls: number }[];
  };
  ops: { total: number; shown: number; by: string[]; rows: Record<string, any>[] };
  kernels: { total: number; shown: number; rows: Record<string, any>[] };
  precision: {
    shares: Record<string, number>; tensor_core_share: number | null; eligible_share: number | null; unknown_share: number;
  };
  roofline: {
    known_share: number | null; mfu: number | null; hfu: number | null; total: number;
    parts: { reason: string; ns: number; share: number; ns_by_class: Record<string, number> }[];
    rows: Record<string, any>[]; peaks: Record<string, any>[];
  };
  device: {
    busy_share: number | null; mfu: number | null; mfu_own_precision: number | null; sm_efficiency: number | null; occupancy: number | null;
    streams: number; concurrency: number | null; copies: Record<string, any>[];
    queue: {
      launches: number; median_delay_ns: number | null; p90_delay_ns: number | null; median_depth: number | null;
      max_depth: number | null; empty_share: number | null;
    };
    timeline: { rank?: number; device: number | null; start_ns: number; end_ns: number; busy: number }[];
  };
  memory: { devices: MemoryDevice[] };
  collectives: {
    rows: Record<string, any>[]; exposed_share: number | null; kernel_share: number | null;
    ranks: Record<string, any>[];
    straggler: null | {
      rank: number; late_ns: number; late_ns_per_step: number; share: number; last: number; matched: number;
      steps_late: number; steps: number; always: boolean; names: string[];
      kind?: string; cause?: string | null; work_ratio?: number | null; blocks_per_launch_ratio?: number | null; launches_ratio?: number | null;
    };
    waits?: { rank: number; for_rank: number; wait_ns: number; calls: number }[];
    worst?: {
      name: string; group: string | null; step: number | null; ranks: number; bytes: number | null; first_rank: number;
      last_rank: number; skew_ns: number; wait_ns: number; transfer_ns: number;
    }[];
    clocks?: {
      rank: number; aligned: boolean; offset_ns: number; drift_ppm: number; residual_ns: number | null; anchors: number;
    }[];
  };
  coverage: {
    runtime: number | null; device_time: number | null; memory: number | null; shapes: number | null;
    stacks: number | null; step_time: number | null;
    gaps: { what: string; share: number; reason: string; fix: string }[];
  };
}

export type Query = Record<string, string | number | boolean | null | undefined>;

/** Requests of one view of a page; all end when the view is left. Paths are relative to the page. */
export interface Api {
  signal: AbortSignal;
  /** JSON of the path. While the server answers 202 it asks again, and tells `onProgress`. */
  get(path: string, query?: Query): Promise<any>;
  post(path: string, body: Json): Promise<any>;
  /** For binary answers: the bytes, or an ApiError. */
  bytes(path: string, query?: Query): Promise<ArrayBuffer>;
  /** For links and downloads. */
  url(path: string, query?: Query): string;
}

export type Changes = Record<string, string | number | null | undefined>;

/** What a page may use. `params` is of the hash; `run` is the run's id, and "" on pages without one. */
export interface Context {
  run: string;
  about: Run | null;
  rank: number | null;
  params: URLSearchParams;
  /** Changes the hash without drawing the page again; null takes a parameter out. */
  setParams(changes: Changes, options?: { replace?: boolean }): void;
  api: Api;
  report(): Promise<Report>;
  /** Opens a page; the run and rank stay unless `params` says otherwise. */
  go(page: string, params?: Changes): void;
  /** The link that `go` would follow. */
  link(page: string, params?: Changes): string;
  state: State;
  runs(): Run[];
  watch: import("./shell/watch.js").Watch;
}

export interface Page {
  name: string;
  title: string;
  /** Pages without a run, such as the list of runs. */
  needsRun?: boolean;
  /** Uses the whole window and scrolls by itself. */
  fills?: boolean;
  render(root: HTMLElement, context: Context): void | (() => void) | Promise<void | (() => void)>;
}

declare global {
  interface Window { Plotly?: any }
}
