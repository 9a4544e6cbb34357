"""What one call for a whole recurrent network leaves of a loop over its cells."""

from __future__ import annotations

from stepscope.registers.entry import measured

_H200 = "NVIDIA H200 and its host, PyTorch 2.11"

RECURRENT_LEAST = measured(
    "RECURRENT_LEAST",
    0.45,
    unit="× the kernels of recurrent cells, forwards and backwards",
    device=_H200,
    how="sums of the kernels of nine training jobs of blind trials: loops over LSTM cells before, one nn.LSTM after",
    when="2026-11-18",
    seen="0.49 to 0.72, median 0.62; 0.43 where cuDNN uses TF32 and the loop does not. Weight gradients and input projections are one product each; what is left runs one cell after the other",
)
RECURRENT_MOST = measured(
    "RECURRENT_MOST",
    0.8,
    unit="× the kernels of recurrent cells, forwards and backwards",
    device=_H200,
    how="sums of the kernels of nine training jobs of blind trials: loops over LSTM cells before, one nn.LSTM after",
    when="2026-11-18",
    seen="0.49 to 0.72, median 0.62",
)
RECURRENT_HOST_LEAST = measured(
    "RECURRENT_HOST_LEAST",
    0.12,
    unit="× the host's time of a loop over recurrent cells, forwards and backwards",
    device=_H200,
    how="steps of nine training jobs of blind trials, in one process: loops over LSTM cells before, one nn.LSTM after; both host-bound",
    when="2026-11-18",
    seen="0.13 to 0.23 of the step, median 0.20; cuDNN still launches four kernels for each cell, where the loop launches 16",
)
RECURRENT_HOST_MOST = measured(
    "RECURRENT_HOST_MOST",
    0.22,
    unit="× the host's time of a loop over recurrent cells, forwards and backwards",
    device=_H200,
    how="steps of nine training jobs of blind trials, in one process: loops over LSTM cells before, one nn.LSTM after; both host-bound",
    when="2026-11-18",
    seen="0.13 to 0.23 of the step, median 0.20",
)
