"""What many ranks cost: time for each, in local processes and on Dask, and the memory of the client.

  python -m benchmarks.ranks.scale [--ranks 32 256] [--events 2500 20000] [--rounds 3]
  python -m benchmarks.ranks.scale --ranks 1024 [--kernels 20 200] [--calls 2 20]

With one number of ranks, a job of tensor and data parallel ranks on Dask with more events, and with more tensor-parallel calls, must need the
same memory (`flat.py`).

Files are the eight real ranks of the corpus' dlrm_8ranks, or the two of a recording of ours, renumbered and moved in time, with
their steps repeated as often as asked. Each measurement is a process of its own; without the cache, so that files are really
read. Times that are compared are the shortest of some rounds, taken in turns. Memory and cost per rank are by the processor's
time and the process' peak, which other programs hardly change.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measure import ROOT
from benchmarks.promises import Promise
from benchmarks.ranks.flat import measure_flat
from benchmarks.repeat import repeat

WORK = ROOT / ".bench"
SCALING, FLAT = 1.5, 1.2
BEYOND = 10_000  # ranks for which cost is computed
_RANK, _WORLD = re.compile(r'("rank": ?)\d+'), re.compile(r'("world_size": ?)\d+')
_TIME = re.compile(r'("ts": ?)(\d+)')
_MEASURED = """
import json, resource, sys, time
from stepscope.cluster.report import report

def cpu(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime

if __name__ == "__main__":
    path, where, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if where == "dask":
        import distributed
        place = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50).get_client()
        place.wait_for_workers(workers)
    else:
        place = workers
    before, begin = cpu(resource.RUSAGE_SELF), time.perf_counter()
    found = report(path, where=place, cache=False)
    seconds, client = time.perf_counter() - begin, cpu(resource.RUSAGE_SELF) - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "client_seconds": client, "worker_seconds": cpu(resource.RUSAGE_CHILDREN),
        "peak_mb": peak, "ranks": len(found.profile.ranks), "events": found.profile.events}))
    if where == "dask":
        place.shutdown()
"""


@dataclass(frozen=True)
class Measured:
    """One report; the processor's time of the client and, of local processes, of the workers."""

    seconds: float
    client_seconds: float
    worker_seconds: float
    peak_mb: float
    ranks: int
    events: int

    @property
    def cpu_per_rank(self) -> float:
        """Seconds of processors for each rank."""
        return (self.client_seconds + self.worker_seconds) / self.ranks


def main() -> int:
    """Measure, print, and fail where a promise is broken."""
    options = _options()
    if len(options.ranks) == 1:
        return _measure_flat(options)
    few, many = min(options.ranks), max(options.ranks)
    WORK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ranks-", dir=WORK) as name:
        folder = Path(name)
        small = {count: written(_sources(), folder, count, min(options.events)) for count in {few, many}}
        large = written(_sources(), folder, few, max(options.events))
        shortest = _shortest(small[few], options.rounds)
        whole, on_dask = _measure(small[many], "processes", 2), _measure(small[many], "dask", 2)
        longer = _measure(large, "processes", 2)
    promises = _promises(shortest, whole, on_dask, longer)
    print()
    for promise in promises:
        print(promise.line())
    _beyond(shortest["processes", 2], whole)
    kept = [asdict(promise) | {"kept": promise.kept} for promise in promises]
    (WORK / "ranks_scale.json").write_text(json.dumps(kept, indent=1))
    return 1 if any(promise.required and not promise.kept for promise in promises) else 0


def _measure_flat(options: argparse.Namespace) -> int:
    WORK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ranks-", dir=WORK) as name:
        promises = measure_flat(Path(name), options.ranks[0], options.kernels, options.calls)
    for promise in promises:
        print(promise.line())
    return 0 if all(promise.kept for promise in promises) else 1


def _sources() -> list[Path]:
    corpus = os.environ.get("STEPSCOPE_CORPUS")
    found = sorted((Path(corpus) / "public" / "dlrm_8ranks").glob("*.json.gz")) if corpus else []
    return found or sorted((ROOT / "tests" / "fixtures" / "capture_gpu" / "torch_ddp").glob("*.json.gz"))


def _shortest(path: Path, rounds: int) -> dict[tuple[str, int], Measured]:
    """By place and number of workers."""
    wanted = [(where, workers) for where in ("processes", "dask") for workers in (1, 2)]
    rows = [(each, _measure(path, *each)) for _ in range(rounds) for each in wanted]
    return {
        each: min((row for other, row in rows if other == each), key=lambda row: row.seconds)
        for each in wanted
    }


def _promises(
    shortest: dict[tuple[str, int], Measured], whole: Measured, on_dask: Measured, longer: Measured
) -> list[Promise]:
    few = shortest["processes", 2]
    times = longer.events / few.events
    return [
        *(
            Promise(
                f"{few.ranks} ranks, {where}: 1 to 2 workers",
                shortest[where, 1].seconds / shortest[where, 2].seconds,
                SCALING,
                at_least=True,
            )
            for where in ("processes", "dask")
        ),
        Promise(
            f"processor time for a rank, {whole.ranks} ranks against {few.ranks}",
            whole.cpu_per_rank / few.cpu_per_rank,
            FLAT,
            at_least=False,
        ),
        Promise(
            f"client's peak memory, {times:.0f} times the events", longer.peak_mb / few.peak_mb, FLAT, at_least=False
        ),
        *(
            Promise(f"{each.ranks} ranks, 2 {where}", each.ranks / each.seconds, 1.0, True, " ranks a second", False)
            for where, each in (("processes", whole), ("Dask workers", on_dask))
        ),
    ]  # fmt: skip


def _beyond(few: Measured, many: Measured) -> None:
    """What so many ranks would cost, by what each more costs between the two that were measured."""
    more = many.ranks - few.ranks
    megabytes = (many.peak_mb - few.peak_mb) / more
    client = (many.client_seconds - few.client_seconds) / more
    worker = (many.worker_seconds - few.worker_seconds) / more
    memory = many.peak_mb + (BEYOND - many.ranks) * megabytes
    print(
        f"each rank: {worker:.2f} s of a worker, {1000 * client:.0f} ms and {megabytes:.2f} MB of the client; computed for "
        f"{BEYOND:,} ranks: {BEYOND * worker / 3600:.1f} hours of workers, {BEYOND * client / 60:.1f} minutes and "
        f"{memory / 1000:.1f} GB of the client"
    )


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
        text = _shift_times(text, rank // len(texts))
        (target / f"worker{rank}_step_12.1694128201545.pt.trace.json").write_text(text)
    return target


def _shift_times(text: str, later: int) -> str:
    return _TIME.sub(lambda found: f"{found[1]}{int(found[2]) + later}", text)


def _measure(path: Path, where: str, workers: int) -> Measured:
    script = path.parent / "measure.py"
    script.write_text(_MEASURED)
    command = [sys.executable, str(script), str(path), where, str(workers)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    found = Measured(**json.loads(ended.stdout.strip().splitlines()[-1]))
    print(f"{path.name} {where} {workers}: {found}", flush=True)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.scale", description=__doc__)
    parser.add_argument(
        "--ranks", type=int, nargs="+", default=[32, 256], help="few and many, or one number on Dask"
    )
    parser.add_argument(
        "--kernels", type=int, nargs=2, default=[20, 200], help="in a step, with one number of ranks"
    )
    parser.add_argument(
        "--calls", type=int, nargs=2, default=[2, 20], help="tensor-parallel ones in a step, likewise"
    )
    parser.add_argument(
        "--events", type=int, nargs=2, default=[2_500, 20_000], help="events of a rank, small and large"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of which the shortest counts")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
