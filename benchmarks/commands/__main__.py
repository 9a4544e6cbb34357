"""Measure whole commands beside the peers', print the figures, and fail where a promise is broken.

Ratios are of processor time where the machine has other work (`--loaded`), of time on the wall elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.commands.logs import make_logs
from benchmarks.commands.timing import Timed, run_once
from benchmarks.inputs import SHIPPED, Input, gpu_xplanes, host_loops, kineto_source, repeated
from benchmarks.measure import ROOT, keep_bytecode
from benchmarks.peers import peer
from benchmarks.promises import Promise

WORK = ROOT / ".bench"
KINETO_EVENTS = 900_000  # 300 MB
XPLANE_EVENTS = 1_500_000
RUNS = 500
COLD, WARM = "stepscope report, cold", "stepscope report, warm"
LIMITS = {"json": 3.5, "tb": 12.0, "xprof": 5.5}
WARM_S, WARM_SHARE = 0.5, 1 / 6
LISTED_S, LISTED_MB = 1.0, 200.0
LISTING = (
    "import resource, sys, time; from stepscope.server.runs.watch import Place, Runs; "
    "begun, used = time.perf_counter(), time.process_time(); found = len(Runs([Place(sys.argv[1])]).look_now().runs); "
    "took, used = time.perf_counter() - begun, time.process_time() - used; "
    "print(found, took, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
)


def main() -> int:
    """Reports of both formats beside the peers, and the list of a folder of logs."""
    options = _options()
    keep_bytecode()
    promises = _kineto(options) + _xplane(options) + _listing(options)
    print()
    for promise in promises:
        print(promise.line())
    WORK.mkdir(exist_ok=True)
    kept = [asdict(promise) | {"kept": promise.kept} for promise in promises]
    (WORK / "commands.json").write_text(json.dumps(kept, indent=1))
    return 1 if any(promise.required and not promise.kept for promise in promises) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command (3)")
    parser.add_argument("--events", type=int, default=KINETO_EVENTS, help="of the Kineto trace (900,000)")
    parser.add_argument("--ours", action="store_true", help="without the peers")
    parser.add_argument("--loaded", action="store_true", help="compare processor time")
    parser.add_argument("--only", choices=("kineto", "xplane", "listing"), help="only one of them")
    return parser.parse_args()


def _kineto(options: argparse.Namespace) -> list[Promise]:
    source = kineto_source()
    if source is None or options.only not in (None, "kineto"):
        return []
    file = repeated(source, "repeat", options.events, WORK / "inputs")
    return _reports(file, () if options.ours else ("json", "tb"), options)


def _xplane(options: argparse.Namespace) -> list[Promise]:
    """Promised for a training loop on a host. XProf reads a GPU's profile faster, and ours takes longer to explain: that is shown only."""
    if options.only not in (None, "xplane"):
        return []
    found = [each for source in host_loops(WORK / "inputs") for each in _xplane_reports(source, options)]
    shown = [each for source in gpu_xplanes() for each in _xplane_reports(source, options)]
    return found + [replace(promise, required=False) for promise in shown]


def _xplane_reports(source: Path, options: argparse.Namespace) -> list[Promise]:
    file = repeated(source, "repeat_xplane", XPLANE_EVENTS, WORK / "inputs")
    return _reports(file, () if options.ours else ("xprof",), options)


def _reports(file: Input, keys: tuple[str, ...], options: argparse.Namespace) -> list[Promise]:
    """In turns: a cold report, a warm one, and each of the peers."""
    cold, warm = Timed(COLD), Timed(WARM)
    peers = {key: (Timed(tool.name), tool) for key in keys for tool in (peer(key, WORK),)}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="stepscope-bench-") as folder:
            _report_twice(cold, warm, file.path, Path(folder))
            for timed, tool in peers.values():
                linked = Path(folder, file.path.name)  # peers leave files beside the one they read
                linked.unlink(missing_ok=True)
                linked.symlink_to(file.path)
                command = [tool.python, "-m", f"benchmarks.drivers.{tool.driver}", str(linked)]
                run_once(timed, command, Path(folder, "output"))
    print(f"\n{file.source}: {file.events:,} events, {file.bytes / 1e6:.0f} MB, whole commands")
    for timed in (cold, warm, *(timed for timed, _ in peers.values())):
        print(timed.line())
    faster = [_faster(file, cold, timed, LIMITS[key], options) for key, (timed, _) in peers.items()]
    return [*faster, _warm(file, cold, warm, options)]


def _report_twice(cold: Timed, warm: Timed, path: Path, folder: Path) -> None:
    settings = {"STEPSCOPE_CACHE": str(folder / "cache")}
    for timed in (cold, warm):
        run_once(
            timed, [sys.executable, "-m", "stepscope", "report", str(path)], folder / timed.name, settings
        )
    if (folder / COLD).read_bytes() != (folder / WARM).read_bytes():
        raise SystemExit("the warm report is another one")


def _figure(timed: Timed, options: argparse.Namespace) -> float:
    return timed.cpu if options.loaded else timed.wall


def _faster(file: Input, ours: Timed, theirs: Timed, limit: float, options: argparse.Namespace) -> Promise:
    what = f"{file.source}, {file.events:,} events: cold report, whole command, faster than {theirs.name}"
    return Promise(what, _figure(theirs, options) / _figure(ours, options), limit, at_least=True)


def _warm(file: Input, cold: Timed, warm: Timed, options: argparse.Namespace) -> Promise:
    limit = max(WARM_S, WARM_SHARE * _figure(cold, options))
    what = f"{file.source}, {file.events:,} events: warm report, whole command"
    return Promise(what, _figure(warm, options), round(limit, 2), at_least=False, unit=" s")


def _listing(options: argparse.Namespace) -> list[Promise]:
    """The first look at a folder of logs, in a process of its own."""
    if options.only not in (None, "listing"):
        return []
    source = next(path for folder in SHIPPED for path in sorted(folder.rglob("*.pt.trace.json.gz")))
    seconds, memory = [], []
    with tempfile.TemporaryDirectory(prefix="stepscope-bench-") as folder:
        make_logs(source, Path(folder, "logs"), RUNS)
        for _ in range(options.rounds):
            timed, output = Timed("the list of runs"), Path(folder, "output")
            run_once(timed, [sys.executable, "-c", LISTING, str(Path(folder, "logs"))], output)
            found, took, used, held = map(float, output.read_text().split())
            if found != RUNS:
                raise SystemExit(f"{found:.0f} of {RUNS} runs were found")
            seconds.append(used if options.loaded else took)
            memory.append(held)
    size = f"a folder of {RUNS} runs"
    print(f"\n{size}: {min(seconds):.2f} s, {max(memory):.0f} MB, {os.cpu_count()} cores")
    return [
        Promise(f"{size}: listed", sorted(seconds)[len(seconds) // 2], LISTED_S, at_least=False, unit=" s"),
        Promise(f"{size}: memory of the process", max(memory), LISTED_MB, at_least=False, unit=" MB"),
    ]


if __name__ == "__main__":
    sys.exit(main())
