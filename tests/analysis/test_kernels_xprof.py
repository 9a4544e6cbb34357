"""Kernel totals against XProf's kernel_stats of the same file, as XProf 2.24 printed them."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.kernels import kernel_calls, kernels_table

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
# name, occurrences, total_duration_us
XPROF = """
nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT 96 3754.44
nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT 96 2558.318
gemm_fusion_dot_74 48 2366.704
gemm_fusion_dot_75 48 2284.08
gemm_fusion_dot_43 48 2159.828
gemm_fusion_dot_26 48 2119.698
nvjet_sm90_tst_256x96_64x4_2x1_v_bz_coopA_NTT 48 1685.75
loop_add_fusion_16 48 1602.872
loop_convert_multiply_fusion_5 48 1373.244
gemm_fusion_dot_44 40 1359.862
wrapped_concatenate_10 88 1162.071
gemm_fusion_dot_general_125 48 610.335
loop_add_fusion_15 80 604.926
gemm_fusion_dot_general_126 48 525.21
gemm_fusion_dot 48 460.257
nvjet_sm90_tst_64x256_64x5_2x1_v_bz_TNN 48 426.941
gemm_fusion_dot_general_96 40 382.138
loop_add_fusion_8 40 379.779
wrapped_add 40 352.735
loop_slice_fusion_17 48 299.294
loop_slice_fusion_15 48 294.463
loop_slice_fusion_16 48 287.229
fusion_318 48 247.708
gemm_fusion_dot_76 48 239.585
fusion_291 48 168.995
gemm_fusion_dot_general_91 8 108.092
loop_add_fusion_10 8 75.039
input_convert_reduce_fusion 8 66.335
input_reduce_fusion 8 9.569
loop_multiply_fusion 8 9.089
"""


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="wants the corpus of real traces")
def test_same_calls_and_totals() -> None:
    """Kernel by kernel."""
    lines = [line.split() for line in XPROF.split("\n") if line]
    theirs = {name: (int(calls), float(total)) for name, calls, total in lines}
    trace = stepscope.load(Path(CORPUS or "") / "h200" / "jax_gpu").traces[0]
    rows = kernels_table(kernel_calls(trace)).group_by("name").agg(pl.col("calls", "total_ns").sum())
    ours = {name: (calls, total / 1000) for name, calls, total in rows.iter_rows()}
    assert ours.keys() == theirs.keys()
    for name, figures in theirs.items():
        assert ours[name] == pytest.approx(figures, rel=1e-6), name
