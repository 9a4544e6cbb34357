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

from benchmarks.kernel_table import ncu, table

PACKAGE = "benchmarks.kernel_table"


@dataclass
class Bench:
    """Where things go, and how long they may take."""

    work: Path
    out: Path
    only: str
    seconds: float
    ends: float

    def limit(self, share: float) -> str:
        """The share of all seconds in which a script begins cases."""
        return f"--seconds={self.seconds * share:.0f}"

    def program(self, module: str, *arguments: str) -> list[str]:
        """One of our scripts."""
        script = f"{PACKAGE}.{module}"
        return [sys.executable, "-m", script, str(self.work), *arguments, f"--only={self.only}"]

    def run(self, title: str, line: list[str], share: float, leave: float = 0, **environment: str) -> bool:
        """A command with its share of the seconds, if the others leave it; its talk goes to the log."""
        began = time.monotonic()
        left = min(share * self.seconds, self.ends - leave * self.seconds - began)
        if left < 15:
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
    bench = Bench(work, options.out, options.only, options.seconds, time.monotonic() + options.seconds)
    _share_caches(work)
    names = ncu.available()
    (options.out / "metrics.txt").write_text("\n".join(n for n in names if "tensor" in n or "pipe_f" in n))
    _torch(bench, names)
    _jax(bench, names)
    _keep(work, options.out)
    found = table.torch_rows(options.out) + table.jax_rows(options.out)
    kept = table.distinct(found)
    table.write(options.out / "kernels.csv", kept)
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
    parser.add_argument("--seconds", type=float, default=380, help="for everything (default 380)")
    parser.add_argument(
        "--work", type=Path, default=Path("/tmp/kernel_table"), help="for what need not be kept"
    )
    return parser.parse_args()


def _share_caches(work: Path) -> None:
    """What the first run compiled and tuned, the run under `ncu` finds ready."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(work / "inductor")
    os.environ["TRITON_CACHE_DIR"] = str(work / "triton")
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"


def _torch(bench: Bench, names: list[str]) -> None:
    """PyTorch's cases as its profiler names them, as the hardware counts them, and once more for their formats."""
    bench.run("torch, profiler", bench.program("run_torch", "profiler", bench.limit(0.3)), 0.4)
    program = bench.program("run_torch", "ncu", bench.limit(0.3))
    bench.run("torch, ncu", ncu.command(ncu.uses(names), bench.work / "torch.csv", program), 0.4)
    program = bench.program("run_torch", "formats", bench.limit(0.15))
    line = ncu.command(ncu.formats(names), bench.work / "torch_formats.csv", program)
    bench.run("torch, formats", line, 0.25, leave=0.2)


def _jax(bench: Bench, names: list[str]) -> None:
    """JAX's cases: small, so that uses and formats fit one run."""
    program = bench.program("run_jax", bench.limit(0.13))
    line = ncu.command(ncu.uses(names) + ncu.formats(names), bench.work / "jax.csv", program)
    bench.run("jax, ncu", line, 0.25, XLA_FLAGS="--xla_gpu_enable_command_buffer=")


if __name__ == "__main__":
    sys.exit(main())
