"""Some cases of the pipeline in a process of their own, under limits: a line when each ends."""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import shutil
import signal
import tempfile
import traceback
from pathlib import Path

_PATIENCE = 20


def main() -> None:
    """Run the cases; those that fail stay behind as folders."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case-seconds", type=float, required=True)
    parser.add_argument("--memory", type=int, required=True, help="MiB")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("seeds", type=int, nargs="+")
    options = parser.parse_args()
    # Tables of a few rows: more threads would only wait for each other. Before Polars is imported.
    os.environ["POLARS_MAX_THREADS"] = "1"
    resource.setrlimit(resource.RLIMIT_DATA, (options.memory << 22, options.memory << 22))
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="stepscope-fuzz-") as scratch:
        os.environ["STEPSCOPE_CACHE"] = str(Path(scratch, "cache"))
        faulthandler.register(signal.SIGPROF, all_threads=True, chain=True)
        for seed in options.seeds:
            # Processor time, since a busy machine is not a hang; the wall clock only catches what waits forever.
            signal.setitimer(signal.ITIMER_PROF, options.case_seconds)
            faulthandler.dump_traceback_later(_PATIENCE * options.case_seconds, exit=True)
            verdict = run(seed, Path(scratch, f"case-{seed}"), options)
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(f"{seed} {verdict}", flush=True)


def run(seed: int, folder: Path, options: argparse.Namespace) -> str:
    """`read` or `refused`, or what is wrong in one line; the case and the traceback are kept then."""
    from benchmarks.drivers.meter import peak_bytes
    from benchmarks.fuzz.cases import case
    from benchmarks.fuzz.drive import drive
    from benchmarks.fuzz.originals import write

    kept = options.out / f"case-{seed}"
    made = case(seed)
    try:
        verdict = drive(made, folder)
        used = peak_bytes() >> 20
        if used > options.memory:
            raise MemoryError(f"{used:,} MiB")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        shutil.rmtree(kept, ignore_errors=True)
        write(made.files, kept)
        (kept / "traceback.txt").write_text(traceback.format_exc(), errors="replace")
        line = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
        return f"FAILED {made.name} {line}".encode("ascii", "replace").decode()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(kept, ignore_errors=True)
    return verdict


if __name__ == "__main__":
    main()
