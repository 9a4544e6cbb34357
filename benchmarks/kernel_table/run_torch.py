"""Runs PyTorch's cases once each: under `ncu`, or under PyTorch's own profiler.

python -m benchmarks.kernel_table.run_torch OUT {ncu,profiler} [--only REGEX] [--all]
"""

from __future__ import annotations

import argparse
import gc
import warnings
from contextlib import nullcontext
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.kernel_table.cases import Case, run_all
from benchmarks.kernel_table.core import TORCH, core
from benchmarks.kernel_table.torch_compiled import compiled_cases
from benchmarks.kernel_table.torch_jobs import job_cases
from benchmarks.kernel_table.torch_layers import attention_cases, convolution_cases
from benchmarks.kernel_table.torch_matmul import matmul_cases
from benchmarks.kernel_table.torch_other import other_cases


def all_cases() -> list[Case]:
    """Every case there is."""
    return [
        *matmul_cases(),
        *convolution_cases(),
        *attention_cases(),
        *other_cases(),
        *job_cases(),
        *compiled_cases(),
    ]


def _release() -> None:
    gc.collect()
    torch.cuda.empty_cache()


def main() -> None:
    """Parse, run, save what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("how", choices=("ncu", "formats", "profiler"))
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    cases = all_cases() if options.all else core(all_cases(), TORCH)
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    recorder = profile(activities=activities, record_shapes=True) if options.how == "profiler" else None
    with recorder or nullcontext():
        outcome = run_all(cases, options.only, options.seconds, _release)
    if recorder:
        recorder.export_chrome_trace(str(options.out / "torch.pt.trace.json.gz"))
    outcome.save(options.out / f"torch_{options.how}.json")


if __name__ == "__main__":
    main()
