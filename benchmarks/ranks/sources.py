"""The real recordings of one rank that jobs are made of."""

from __future__ import annotations

from pathlib import Path

from benchmarks.recordings.archive import open_recording

_DIAGNOSIS, _HELD_OUT = "diagnosis", "diagnosis_heldout"
# Real single-rank recordings whose steps are made of different things.
SOURCES = {
    "loader": (_DIAGNOSIS, "torch_loader.slow.pt.trace.json.gz"),
    "own_loader": (_DIAGNOSIS, "torch_own_loader.slow.pt.trace.json.gz"),
    "resnet_loader": (_HELD_OUT, "heldout-torch-resnet-loader.slow.pt.trace.json.gz"),
    "metrics": (_DIAGNOSIS, "torch_metrics.slow.pt.trace.json.gz"),
    "transformer": (_HELD_OUT, "heldout-torch-gpt-attention.mended.pt.trace.json.gz"),
    "bert": (_HELD_OUT, "heldout-torch-bert-precision.mended.pt.trace.json.gz"),
    "cells": (_HELD_OUT, "heldout-torch-lstm-cells.slow.pt.trace.json.gz"),
    "dense": (_DIAGNOSIS, "torch_fp32_matmul.slow.pt.trace.json.gz"),
    "bf16": (_DIAGNOSIS, "torch_healthy_bf16.mended.pt.trace.json.gz"),
    "convolutions": (_DIAGNOSIS, "torch_healthy_convolutions.mended.pt.trace.json.gz"),
    "jax": (_DIAGNOSIS, "jax_healthy_mlp.mended.xplane.pb.gz"),
    "jax_python": (_DIAGNOSIS, "jax_input.slow.xplane.pb.gz"),
}


def find_source(name: str) -> Path:
    """The recording of this name."""
    return open_recording(*SOURCES[name])
