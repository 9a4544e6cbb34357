"""The table of trust."""

from __future__ import annotations

from pathlib import Path

from stepscope.reports.model.report import Interval
from stepscope.trial.conduct import Outcome, Tried
from stepscope.trial.recorded import read_rows, record, trials_table, trust_table


def test_trials_are_appended_and_summed_up_per_finding(tmp_path: Path) -> None:
    tried = [
        Tried("workers", Interval(1.9, 2.0, 2.1), Interval(1.5, 1.9, 2.4), "input-bound"),
        Tried("bf16", Interval(1.0, 1.1, 1.2), Interval(2.0, 2.5, 3.0), "mixed-precision"),
        Tried("compile", Interval(1.0, 1.1, 1.2)),
        Tried("tf32", None, Interval(1.1, 1.2, 1.3), "fp32-matmul", "failed"),
    ]
    path = tmp_path / "a.trial.jsonl"
    outcome = Outcome(1e6, 0.01, tried)
    assert [record(path, outcome, "python train.py", "a GPU") for _ in range(2)] == [3, 3]
    path.write_bytes(path.read_bytes() + b"not a row\n")
    table = trust_table(read_rows([path]))
    assert "| `input-bound` | 2 | 2 | 1.05 (1.05–1.05) |" in table
    assert "| `mixed-precision` | 2 | 0 |" in table
    assert "compile" not in table
    every = trials_table(read_rows([path]))
    assert (
        "| `input-bound` | `workers` | `python train.py` | a GPU | 1.90 (1.50–2.40) | 2.00 (1.90–2.10) | yes |"
        in every
    )
