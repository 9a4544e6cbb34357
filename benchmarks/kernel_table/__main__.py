"""Makes the table of kernels with `ncu`'s tensor-pipe counters. Wants one NVIDIA GPU, PyTorch, Triton, JAX and ncu.

  python3 -m benchmarks.kernel_table OUT

Writes OUT/kernels.csv, the raw counters and PyTorch's profile beside it, metrics.txt (which counters the chip has),
log.txt, and outcomes.json: what happened to each case.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kernel_table import ncu, recorded, table

PACKAGE = "benchmarks.kernel_table"
TRITON_GEMM = "--xla_gpu_enable_command_buffer= --xla_gpu_cublas_fallback=false"
LIBRARIES = "--xla_gpu_enable_command_buffer="


@dataclass
class Bench:
    """Where things go, and until when."""

    work: Path
    out: Path
    only: str
    ends: float

    def program(self, module: str, *arguments: str) -> list[str]:
        """One of our scripts."""
        return [
            sys.executable,
            "-m",
            f"{PACKAGE}.{module}",
            str(self.work),
            *arguments,
            f"--only={self.only}",
        ]

    def run(self, title: str, line: list[str], most_s: float, **environment: str) -> bool:
        """A command with what is left of the time; its talk goes to the log."""
        left = min(most_s, self.ends - time.monotonic())
        began = time.monotonic()
        if left < 20:
            print(f"{title}: skipped, no time left", flush=True)
            return False
        with (self.out / "log.txt").open("a") as log:
            print(f"\n$ {' '.join(line)}", file=log, flush=True)
            env = {**os.environ, **environment}
            process = subprocess.Popen(line, env=env, stdout=log, stderr=log, start_new_session=True)
            try:
                code = process.wait(timeout=left)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # ncu's program too, which would keep the device
                code = process.wait()
        print(f"{title}: exit {code} after {time.monotonic() - began:.0f} s", flush=True)
        return code == 0


def main() -> int:
    """Record, count, join, write."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    bench = Bench(work, options.out, options.only, time.monotonic() + options.seconds)
    _share_caches(work)
    names = ncu.available()
    metrics = ncu.chosen(names)
    wanted = [n for n in names if "tensor" in n or "pipe_f" in n]
    (options.out / "metrics.txt").write_text(
        "chosen\n" + "\n".join([*metrics, "", "all of interest", *wanted])
    )
    found = _torch(bench, metrics, options.seconds) + _jax(bench, metrics, options.seconds)
    kept = table.distinct(found)
    table.write(options.out / "kernels.csv", kept)
    _keep(work, options.out)
    used = sum(bool(row.tensor_instructions) for row in kept)
    print(
        f"{len(found)} launches, {len({r.name for r in kept})} distinct kernels, {used} rows with tensor cores"
    )
    return 0 if kept else 1


def _keep(work: Path, out: Path) -> None:
    """The raw counters and the profile too, in few files: a table can be joined anew without the machine."""
    outcomes = {path.stem: json.loads(path.read_text()) for path in work.glob("*.json")}
    (out / "outcomes.json").write_text(json.dumps(outcomes, indent=1))
    for log in work.glob("*.csv"):
        (out / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    for trace in work.glob("*.trace.json.gz"):
        shutil.copy(trace, out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python3 -m {PACKAGE}", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="a regular expression over the names of the cases")
    parser.add_argument("--seconds", type=float, default=480, help="for everything (default 480)")
    parser.add_argument(
        "--work", type=Path, default=Path("/tmp/kernel_table"), help="for what need not be kept"
    )
    return parser.parse_args()


def _share_caches(work: Path) -> None:
    """What the first run compiled and tuned, the run under `ncu` finds ready."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(work / "inductor")
    os.environ["TRITON_CACHE_DIR"] = str(work / "triton")
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"


def _torch(bench: Bench, metrics: list[str], seconds: float) -> list[table.Row]:
    """PyTorch's cases twice: as its profiler names them, and as the hardware counts them."""
    part = seconds / 480
    limits = (f"--build-s={150 * part:.0f}", f"--run-s={40 * part:.0f}")
    bench.run("torch, profiler", bench.program("run_torch", "profiler", *limits), 220 * part)
    limits = (f"--build-s={70 * part:.0f}", f"--run-s={110 * part:.0f}")
    program = bench.program("run_torch", "ncu", *limits)
    log = bench.work / "torch.csv"
    if not bench.run("torch, ncu", ncu.command(metrics, log, program), 230 * part):
        bench.run("torch, ncu again", ncu.command(ncu.FALLBACK, log, program), 120 * part)
    trace = bench.work / "torch.pt.trace.json.gz"
    kernels = recorded.read(trace) if trace.exists() else []
    return _joined("torch", bench.work / "torch_ncu.json", log, kernels)


def _jax(bench: Bench, metrics: list[str], seconds: float) -> list[table.Row]:
    """JAX's cases, once with the libraries' matrix products and once with XLA's own."""
    found = []
    part = seconds / 480
    for name, flags in (("jax_libraries", LIBRARIES), ("jax_triton", TRITON_GEMM)):
        only = () if name == "jax_libraries" else ("--build-s=20", "--run-s=20")
        log = bench.work / f"{name}.csv"
        line = ncu.command(metrics, log, bench.program("run_jax", name, *only))
        bench.run(name, line, 110 * part, XLA_FLAGS=flags)
        found += _joined("jax", bench.work / f"{name}.json", log, [])
    return found


def _joined(framework: str, outcome: Path, log: Path, kernels: list[recorded.Recorded]) -> list[table.Row]:
    if not outcome.exists() or not log.exists():
        return []
    return table.rows(framework, outcome, ncu.read(log), kernels)


if __name__ == "__main__":
    sys.exit(main())
