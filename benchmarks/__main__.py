"""Run ours and the peers on the same files, print the figures, and fail where a promise is broken."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.inputs import Input, kineto_source, repeated, xplane_sources
from benchmarks.measure import AGAIN, OURS, REPORT, ROOT, Series, Tool, measure
from benchmarks.peers import TOOLS, peer
from benchmarks.promises import Promise, explained, faster, linear, second_open, smaller

WORK = ROOT / ".bench"
KINETO_SIZES = (200_000, 500_000, 1_700_000)
XPLANE_SIZE = 1_500_000
OPTIONAL = {TOOLS["hta"][0]}  # it fails on traces of this size
Measured = list[tuple[Input, dict[str, Series]]]


def main() -> int:
    """Everything: inputs, measurements, table, promises, results.json."""
    options = _options()
    kineto, xplane = _kineto(options), _xplane(options)
    promises = _promises(kineto, xplane)
    print(
        f"\n{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    for file, found in kineto + xplane:
        _print(file, found)
    print()
    for promise in promises:
        print(promise.line())
    _save(kineto + xplane, promises)
    broken = [promise for promise in promises if promise.required and not promise.kept]
    failed = [name for _, found in kineto + xplane for name, series in found.items() if series.failure]
    return 1 if broken or set(failed) - OPTIONAL else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each tool on each file (default 5)")
    parser.add_argument(
        "--budget", type=float, default=30, help="seconds for a tool on a file, after two runs (30)"
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=KINETO_SIZES, help="events of the Kineto traces"
    )
    parser.add_argument("--xplane-size", type=int, default=XPLANE_SIZE, help="events of the XPlane files")
    parser.add_argument(
        "--all-peers", action="store_true", help="Holistic Trace Analysis too, which promises nothing"
    )
    parser.add_argument("--only", choices=("kineto", "xplane"), help="only one kind of file")
    parser.add_argument("--ours", action="store_true", help="only our own figures, quickly")
    return parser.parse_args()


def _kineto(options: argparse.Namespace) -> Measured:
    if options.only == "xplane":
        return []
    source = kineto_source()
    if source is None:
        raise SystemExit("No Kineto trace to repeat: set STEPSCOPE_CORPUS to a folder with real profiles.")
    files = [repeated(source, "repeat", size, WORK / "inputs") for size in options.sizes]
    keys = () if options.ours else ("json", "tb", "hta") if options.all_peers else ("json", "tb")
    return [(file, _measured(file, [peer(key, WORK) for key in keys], options)) for file in files]


def _xplane(options: argparse.Namespace) -> Measured:
    if options.only == "kineto":
        return []
    sources = xplane_sources(WORK / "inputs")
    if not sources:
        raise SystemExit("No XPlane file to repeat: set STEPSCOPE_CORPUS to a folder with real profiles.")
    files = [repeated(source, "repeat_xplane", options.xplane_size, WORK / "inputs") for source in sources]
    peers = [] if options.ours else [peer("xprof", WORK)]
    return [(file, _measured(file, peers, options)) for file in files]


def _measured(file: Input, peers: list[Tool], options: argparse.Namespace) -> dict[str, Series]:
    return measure(peers, file.path, rounds=options.rounds, budget_seconds=options.budget)


def _promises(kineto: Measured, xplane: Measured) -> list[Promise]:
    found: list[Promise] = []
    for file, series in kineto:
        found += _against_peers(file, series, required=file.events >= KINETO_SIZES[1])
    if len(kineto) > 1:
        (small, first), (large, last) = kineto[0], kineto[-1]
        if first[OURS].runs and last[OURS].runs:
            found += linear((small.events, first[OURS]), (large.events, last[OURS]))
    for number, (file, series) in enumerate(xplane):
        found += _against_peers(file, series, required=number == 0 and file.events >= XPLANE_SIZE)
    return found


def _against_peers(file: Input, series: dict[str, Series], *, required: bool) -> list[Promise]:
    """Our figures against each peer that gave a result; only a comparison where nothing was promised."""
    size = f"{file.source}, {file.events:,} events"
    ours, again = series[OURS], series[AGAIN]
    if not ours.runs or not again.runs or not series[REPORT].runs:
        return []
    found = []
    for tool, limit in (("json.load", 6.0), ("torch-tb-profiler", 18.0), ("XProf overview", 15.0)):
        if tool in series and series[tool].runs:
            found.append(faster(size, ours, series[tool], limit, required=required))
    if "json.load" in series and series["json.load"].runs and required:
        found.append(smaller(size, ours, series["json.load"], 0.5))
        largest = file.events >= KINETO_SIZES[-1]
        found.append(explained(size, series[REPORT], series["json.load"], 4.0, required=largest))
    return [*found, second_open(size, ours, again)]


def _print(file: Input, found: dict[str, Series]) -> None:
    print(f"\n{file.source}: {file.events:,} events, {file.bytes / 1e6:.0f} MB ({file.path.name})")
    print(f"  {'':24}{'seconds':>9}{'cpu s':>9}{'peak MB':>9}{'time':>8}{'memory':>8}   all runs, s")
    ours = found[OURS]
    for series in found.values():
        if series.failure:
            print(f"  {series.tool:24}failed: {series.failure}")
            continue
        ratio = series.seconds / ours.seconds if ours.runs else float("nan")
        memory = series.peak_bytes / ours.peak_bytes if ours.runs else float("nan")
        runs = " ".join(f"{run.seconds:.3f}" for run in series.runs)
        figures = f"{series.seconds:9.3f}{series.cpu_seconds:9.3f}{series.peak_bytes / 1e6:9.0f}"
        print(f"  {series.tool:24}{figures}{ratio:7.2f}x{memory:7.2f}x   {runs}")


def _save(measured: Measured, promises: list[Promise]) -> None:
    """Everything that was measured, for later comparison."""
    files = [
        {
            "file": file.path.name,
            "source": file.source,
            "events": file.events,
            "bytes": file.bytes,
            "tools": {name: asdict(series) for name, series in found.items()},
        }
        for file, found in measured
    ]
    rows = [asdict(promise) | {"kept": promise.kept} for promise in promises]
    WORK.mkdir(exist_ok=True)
    target = Path(WORK, "results.json")
    target.write_text(json.dumps({"files": files, "promises": rows}, indent=1))
    print(f"\nall figures: {target.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
