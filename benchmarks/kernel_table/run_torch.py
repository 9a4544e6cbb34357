"""Runs PyTorch's cases once each: under `ncu`, or under PyTorch's own profiler.

python -m benchmarks.kernel_table.run_torch OUT {ncu,profiler} [--only REGEX]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.kernel_table.cases import Case, Limits, run_all
from benchmarks.kernel_table.marker import Marker
from benchmarks.kernel_table.torch_compiled import compiled_cases
from benchmarks.kernel_table.torch_jobs import job_cases
from benchmarks.kernel_table.torch_layers import attention_cases, convolution_cases
from benchmarks.kernel_table.torch_matmul import matmul_cases
from benchmarks.kernel_table.torch_other import other_cases


def all_cases() -> list[Case]:
    """In the order in which they should be lost when time runs out: the slowest to build last."""
    return [
        *matmul_cases(),
        *convolution_cases(),
        *attention_cases(),
        *other_cases(),
        *job_cases(),
        *compiled_cases(),
    ]


@contextmanager
def counters(marker: Marker) -> Iterator[None]:
    """The window that `ncu` looks at."""
    marker.start()
    yield
    marker.stop()


def main() -> None:
    """Parse, run, save what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("how", choices=("ncu", "profiler"))
    parser.add_argument("--only", default="")
    parser.add_argument("--build-s", type=float, default=150)
    parser.add_argument("--run-s", type=float, default=150)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    limits = Limits(options.build_s, options.run_s)
    if options.how == "ncu":
        outcome = run_all(all_cases(), options.only, limits, counters)
    else:
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        recorder = profile(activities=activities, record_shapes=True)
        outcome = run_all(all_cases(), options.only, limits, lambda _: recorder)
        recorder.export_chrome_trace(str(options.out / "torch.pt.trace.json.gz"))
    outcome.save(options.out / f"torch_{options.how}.json")


if __name__ == "__main__":
    main()
