"""What many ranks cost: time for each, in local processes and on Dask, and the memory of the client.

  STEPSCOPE_CORPUS=… python -m benchmarks.ranks.scale [--ranks 32 256] [--events 2500 10000]

Files are the eight real ranks of the corpus' dlrm_8ranks, renumbered and moved in time, with their step repeated as often as
asked. Each measurement is a process of its own; without the cache, so that files are really read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.repeat import repeat

SCALING, FLAT = 1.5, 1.3
_RANK, _WORLD = re.compile(r'("rank": ?)\d+'), re.compile(r'("world_size": ?)\d+')
_TIME = re.compile(r'("ts": ?)(\d+)')
_MEASURED = """
import json, resource, sys, time
from stepscope.cluster.report import report

if __name__ == "__main__":
    path, where, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if where == "dask":
        import distributed
        place = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50).get_client()
    else:
        place = workers
    begin = time.perf_counter()
    found = report(path, where=place, cache=False)
    took = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": took, "peak_mb": peak / 1024, "ranks": len(found.profile.ranks), "events": found.profile.events}))
    if where == "dask":
        place.shutdown()
"""


def main() -> int:
    """Measure, print, and fail where a promise is broken."""
    options = _options()
    corpus = os.environ.get("STEPSCOPE_CORPUS")
    if corpus is None:
        raise SystemExit("Set STEPSCOPE_CORPUS to the folder of real profiles.")
    sources = sorted((Path(corpus) / "public" / "dlrm_8ranks").glob("*.json.gz"))
    few, many = min(options.ranks), max(options.ranks)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = {count: written(sources, folder, count, min(options.events)) for count in {few, many}}
        large = written(sources, folder, few, max(options.events))
        one, two = (_measure(small[few], "processes", workers) for workers in (1, 2))
        dask_one, dask_two = (_measure(small[few], "dask", workers) for workers in (1, 2))
        whole, on_dask = _measure(small[many], "processes", 2), _measure(small[many], "dask", 2)
        more_events = _measure(large, "processes", 2)
    figures = {
        "scaling from 1 to 2 local processes": one["seconds"] / two["seconds"],
        "scaling from 1 to 2 Dask workers": dask_one["seconds"] / dask_two["seconds"],
        f"cost of a rank, {many} against {few}": (whole["seconds"] / many) / (two["seconds"] / few),
        f"client's memory, {more_events['events'] / two['events']:.1f} times the events": more_events[
            "peak_mb"
        ]
        / two["peak_mb"],
    }
    print(
        f"ranks per second: {many / whole['seconds']:.2f} in 2 processes, {many / on_dask['seconds']:.2f} on 2 Dask workers"
    )
    for what, figure in figures.items():
        print(f"{what}: {figure:.2f}")
    scaling, on_workers, per_rank, memory = figures.values()
    return 0 if min(scaling, on_workers) >= SCALING and max(per_rank, memory) <= FLAT else 1


def written(sources: list[Path], folder: Path, ranks: int, events: int) -> Path:
    """A folder with the files of so many ranks."""
    target = folder / f"{ranks}x{events}"
    target.mkdir()
    texts = []
    for number, source in enumerate(sources):
        longer = folder / f"source{number}.json"
        repeat(source, longer, events)
        texts.append(longer.read_text())
    for rank in range(ranks):
        text = _RANK.sub(rf"\g<1>{rank}", _WORLD.sub(rf"\g<1>{ranks}", texts[rank % len(texts)]))
        later = rank // len(texts)
        text = _TIME.sub(lambda found, later=later: f"{found[1]}{int(found[2]) + later}", text)  # type: ignore[misc]
        (target / f"worker{rank}_step_12.1694128201545.pt.trace.json").write_text(text)
    return target


def _measure(path: Path, where: str, workers: int) -> dict[str, float]:
    script = path.parent / "measure.py"
    script.write_text(_MEASURED)
    command = [sys.executable, str(script), str(path), where, str(workers)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    found: dict[str, float] = json.loads(ended.stdout.strip().splitlines()[-1])
    print(f"{path.name} {where} {workers}: {found}", flush=True)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.scale", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs=2, default=[32, 256], help="few and many")
    parser.add_argument(
        "--events", type=int, nargs=2, default=[2_500, 10_000], help="events of a rank, small and large"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
