"""The profiles of the first corpus, and reports of recordings, each made once for all tests of a session."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from stepscope.reports.build import report
from stepscope.reports.model.report import Report
from tests.shared.kept import made_once

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
PROFILES = (
    "h200/resnet_input_bound.pt.trace.json.gz", "h200/dqn_launch_bound.pt.trace.json.gz", "h200/gpt_bf16_eager.pt.trace.json.gz",
    "h200/ddp_rank*.pt.trace.json.gz", "h200/jax_gpu", "h200/jax_cupti_conflict", "tensorflow/custom_loop",
    "tensorflow/keras_callback", "tensorflow/tf1_run_metadata", "public/kineto_resnet50_workers0.pt.trace.json.gz",
    "public/kineto_resnet50_workers4.pt.trace.json.gz", "public/a100x2_nccl.json.gz", "public/dlrm_8ranks", "public/a100_triton.json.gz",
    "public/a100_event_sync.json.gz", "public/mi250_toy.json.gz", "public/gloo_rank34_cpu_only.pt.trace.json.gz",
)  # fmt: skip


def of(path: str) -> Report:
    """The report of one profile of the corpus."""
    return report_once(str(Path(CORPUS or ".") / path))


@cache
def report_once(path: str) -> Report:
    """The whole report; what one worker has made, others open."""
    return made_once("reports", path, lambda: report(path))
