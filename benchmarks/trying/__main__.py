"""Adds trials to the table of trust: everyday jobs, each with one mistake, through `stepscope try --record`.

  python -m benchmarks.trying [--only REGEX] [--record FILE] [--rounds 3]

Without a GPU only the jobs that make sense on a CPU run. The rows go to benchmarks/trying/recorded, a file per device, and the page
docs/trust.md is written anew. Run it with a Python that has the frameworks.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trying.page import FOLDER, PAGE, page

JOBS = FOLDER.parent / "jobs"


@dataclass(frozen=True)
class Job:
    """A script, and the changes that undo its mistake; a healthy one gets whatever its findings ask for."""

    name: str
    changes: tuple[str, ...] = ()
    needs_gpu: bool = True


ALL = (
    Job("workers", ("workers",), needs_gpu=False),
    Job("fp32_mlp", ("tf32", "bf16")),
    Job("fp32_transformer", ("tf32", "bf16")),
    Job("optimizer_loop", ("fused-optimizer",)),
    Job("checkpointed", ("no-checkpointing",)),
    Job("conv_nhwc", ("channels-last",)),
    Job("empty_cache", ("no-empty-cache",)),
    Job("jax_fp32", ("jax-tf32",)),
    Job("eager_small", ("compile-reduce-overhead", "compile")),
    Job("cudnn_search", ("cudnn-benchmark",)),
    Job("healthy"),
)


def main() -> int:
    """Run the jobs one after the other; one that fails does not stop the others."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    device = find_gpu()
    record = asked.record or FOLDER / f"{device or 'cpu'}.trial.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    failures = 0
    for job in chosen(asked.only, bool(device)):
        print(f"\n{job.name}", flush=True)
        failures += try_job(job, record.resolve(), asked.rounds) != 0
    PAGE.write_text(page(), "utf-8")
    return 1 if failures else 0


def chosen(only: str, has_gpu: bool) -> Iterator[Job]:
    """The jobs that this machine can run."""
    return (job for job in ALL if re.search(only, job.name) and (has_gpu or not job.needs_gpu))


def find_gpu() -> str:
    """The first one's name, as a file may be called; empty where there is none."""
    if shutil.which("nvidia-smi") is None:
        return ""
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    ended = subprocess.run(asked, capture_output=True, text=True, check=False)
    first = ended.stdout.partition("\n")[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", first).strip("-") if ended.returncode == 0 else ""


def try_job(job: Job, record: Path, rounds: int) -> int:
    """In a folder of its own; its exit code."""
    with tempfile.TemporaryDirectory(prefix="stepscope-trying-") as place:
        shutil.copy(JOBS / f"{job.name}.py", place)
        only = [word for change in job.changes for word in ("--only", change)]
        words = ["--yes", "--rounds", str(rounds), "--record", str(record), *only]
        command = [sys.executable, "-m", "stepscope", "try", *words, "--", sys.executable, f"{job.name}.py"]
        return subprocess.run(command, cwd=place, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
