"""Measure the trace viewer, print the figures, and fail where a promise is broken."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.inputs import kineto_source, repeated, xplane_sources
from benchmarks.measure import ROOT, Series, Tool, keep_bytecode, one_more
from benchmarks.peers import peer
from benchmarks.promises import Promise
from benchmarks.viewer.page import Seen, first_figures, look
from benchmarks.viewer.server import serving

WORK = ROOT / ".bench"
EVENTS = 10_000_000
XPLANE_EVENTS = 1_500_000
WARM_EVENTS = 900_000
ROWS = 60


def main() -> int:
    """The page over ten million events, and the first view beside XProf's."""
    options = _options()
    keep_bytecode()
    promises = [] if options.only in ("first-view", "warm-page") else _page(options.events)
    if options.only in (None, "warm-page"):
        promises += _warm_page(options.rounds)
    if options.only in (None, "first-view"):
        promises += _first_view(options.rounds, options.ours)
    print()
    for promise in promises:
        print(promise.line())
    WORK.mkdir(exist_ok=True)
    kept = [asdict(promise) | {"kept": promise.kept} for promise in promises]
    (WORK / "viewer.json").write_text(json.dumps(kept, indent=1))
    return 1 if any(promise.required and not promise.kept for promise in promises) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.viewer", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="events of the trace (10,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="first views of each tool (3)")
    parser.add_argument("--only", choices=("page", "warm-page", "first-view"), help="only one of them")
    parser.add_argument("--ours", action="store_true", help="without XProf")
    return parser.parse_args()


def _page(events: int) -> list[Promise]:
    source = kineto_source()
    if source is None:
        raise SystemExit("No Kineto trace to repeat: set STEPSCOPE_CORPUS to a folder with real profiles.")
    with tempfile.TemporaryDirectory(prefix="viewer-", dir=_made(WORK)) as folder:
        place, cache = Path(folder, "logs", f"repeated.{source.name.split('.', 1)[1]}"), Path(folder, "cache")
        command = [sys.executable, "-m", "benchmarks.viewer.build", str(source), str(place), str(events)]
        environment = os.environ | {"STEPSCOPE_CACHE": str(cache)}
        made = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
        count = int(made.stdout.strip())
        print(f"{count:,} events: {source.name} repeated", file=sys.stderr)
        with serving(place.parent, cache) as served:
            seen = look(served)
    _print(seen, count)
    return _promises(seen, count)


def _warm_page(rounds: int) -> list[Promise]:
    """The first page of a profile that was seen before, from a server that has just started."""
    source = kineto_source()
    if source is None:
        raise SystemExit("No Kineto trace to repeat: set STEPSCOPE_CORPUS to a folder with real profiles.")
    file = repeated(source, "repeat", WARM_EVENTS, WORK / "inputs")
    paints = []
    with tempfile.TemporaryDirectory(prefix="viewer-", dir=_made(WORK)) as folder:
        logs, cache = _made(Path(folder, "logs")), Path(folder, "cache")
        (logs / file.path.name).hardlink_to(file.path)
        for _ in range(1 + rounds):
            with serving(logs, cache) as served:
                paints.append(first_figures(served))
    cold, warm = paints[0], statistics.median(paints[1:])
    print(f"\nthe first page of {file.events:,} events: {cold:.0f} ms cold, {warm:.0f} ms from what was kept")
    what = f"overview, {file.events:,} events: first paint with figures, seen before"
    return [Promise(what, warm / 1000, 0.6, at_least=False, unit=" s")]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _print(seen: Seen, events: int) -> None:
    print(f"\nthe trace viewer, {events:,} events, {seen.rows} rows in view, {os.cpu_count()} cores, no GPU")
    rows = [
        ("frame", "ms", seen.frames_ms),
        ("tile", "ms", seen.tiles_ms),
        ("in hands", "ms", seen.in_hands_ms),
    ]
    for name, unit, values in rows:
        told = f"median {statistics.median(values):.1f} {unit}, p95 {p95(values):.1f} {unit}, most {max(values):.1f} {unit}"
        print(f"  {name:9} {told}, {len(values)} of them")
    print(f"  {seen.per_second:.0f} frames a second; first paint after {seen.first_paint_ms:.0f} ms")
    server = ", ".join(f"{name} {value / 1e6:.0f} MB" for name, value in seen.server.items())
    print(f"  server: {server}; page: {seen.page_bytes / 1e6:.0f} MB")


def p95(values: list[float]) -> float:
    """The value that 95 of 100 do not exceed."""
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def _promises(seen: Seen, events: int) -> list[Promise]:
    size = f"viewer, {events:,} events"
    return [
        Promise(f"{size}: first paint from the cache", seen.first_paint_ms / 1000, 1.0, False, " s"),
        Promise(f"{size}: tile latency, p95", p95(seen.tiles_ms), 50.0, False, " ms"),
        Promise(f"{size}: frame time, p95", p95(seen.frames_ms), 16.0, False, " ms"),
        Promise(f"{size}: rows in view", seen.rows, ROWS, True, ""),
        Promise(f"{size}: server memory", seen.server["resident"] / events, 60.0, False, " bytes an event"),
        Promise(f"{size}: page memory", seen.page_bytes / 1e6, 300.0, False, " MB"),
    ]


def _first_view(rounds: int, ours_only: bool) -> list[Promise]:
    sources = xplane_sources(WORK / "inputs")
    if not sources:
        raise SystemExit("No XPlane file to repeat: set STEPSCOPE_CORPUS to a folder with real profiles.")
    file = repeated(sources[0], "repeat_xplane", XPLANE_EVENTS, WORK / "inputs")
    ours, theirs = Series("stepscope trace"), Series("XProf trace viewer")
    python = None if ours_only else peer("xprof", WORK).python
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="stepscope-bench-") as cache:
            tool = Tool(ours.tool, "ours_trace", sys.executable)
            one_more(ours, tool, file.path, {"STEPSCOPE_CACHE": cache})
        if python is not None:
            one_more(theirs, Tool(theirs.tool, "xprof_trace", python), file.path, alone=True)
    for series in (ours, theirs):
        if series.failure:
            raise SystemExit(f"{series.tool}: {series.failure}")
        if series.runs:
            print(f"  {series.tool}: {series.seconds:.2f} s, {series.cpu_seconds:.2f} s of processors")
    if not theirs.runs:
        return []
    what = f"{file.source}, {file.events:,} events: first trace view faster than XProf's, cold"
    return [Promise(what, theirs.seconds / ours.seconds, 15.0, True)]


if __name__ == "__main__":
    sys.exit(main())
