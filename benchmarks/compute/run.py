"""Runs the cases once each between two markers: under `ncu`, or under PyTorch's own profiler.

python -m benchmarks.compute.run OUT {ncu,profiler} [--only REGEX] [--seconds S]
"""

from __future__ import annotations

import argparse
import gc
import warnings
from contextlib import nullcontext
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.compute.cases import cases
from benchmarks.kernel_table.cases import run_all


def _release() -> None:
    gc.collect()
    torch.cuda.empty_cache()


def main() -> None:
    """Parse, run, save what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("how", choices=("ncu", "profiler"))
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    recorder = profile(activities=activities, record_shapes=True) if options.how == "profiler" else None
    with recorder or nullcontext():
        outcome = run_all(cases(), options.only, options.seconds, _release)
    if recorder:
        recorder.export_chrome_trace(str(options.out / "compute.pt.trace.json.gz"))
    outcome.save(options.out / f"{options.how}.json")


if __name__ == "__main__":
    main()
