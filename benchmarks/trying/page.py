"""docs/trust.md, from the trials that were kept: `python -m benchmarks.trying.page docs/trust.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from stepscope.trial.recorded import ENDING, Row, read_rows, trials_table, trust_table

FOLDER = Path(__file__).parent / "recorded"
PAGE = Path(__file__).parents[2] / "docs" / "trust.md"
_HEAD = """# Promised and measured

A finding promises a speed-up. [`stepscope try`](try.md) makes the change and measures it. This page sets one against the other for every trial that
was kept; `stepscope try --record FILE` keeps one, and `make bench` adds those of the machine that it runs on. It is generated:
`python -m benchmarks.trying.page docs/trust.md`.

A promise **held** if the middle of the measured interval is inside the promised one, or at most 15 % outside while the two overlap. Both are
times faster than the unchanged job. A change that is only a part of a finding's advice, or that no finding asks for, has no promise.
"""
_JOBS = """
The jobs are in `benchmarks/trying/jobs`: scripts with one everyday mistake each, written for this page, so that these figures flatter. The
[blind trials](report/findings.md#how-good-the-promises-are) are the harder test.

Two rows of the H200 have no promise although one was printed: stepscope then set what `fp32-matmul` promises for bfloat16, 9.30 (7.44–11.71), beside
`tf32`, and what `launch-bound` promises for CUDA graphs, 6.81 (4.91–9.64), beside `compile`. Neither would have held. The later trial of `tf32` has a
promise of its own. `launch-bound` promises a CUDA graph of the whole step; `compile-reduce-overhead` captures the model only, and loss and optimizer
stay eager: its promise did not hold, and none is printed any more. Trials of `empty_cache`, `optimizer_loop` and the first of `fp32_mlp` have one round only: they were cut short.
An eleventh job, `healthy`, got no finding, so nothing was tried.
"""


def page(rows: Iterable[Row] | None = None) -> str:
    """The whole page."""
    kept = list(read_rows(sorted(FOLDER.glob(f"*{ENDING}"))) if rows is None else rows)
    if not kept:
        return f"{_HEAD}\nNo trial was kept yet.\n"
    verdicts = [row.is_right for row in kept if row.is_right is not None]
    total = f"\n{sum(verdicts)} of {len(verdicts)} promises held.\n\n"
    return f"{_HEAD}{total}{trust_table(kept)}\n## Every trial\n{_JOBS}\n{trials_table(kept)}"


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE).write_text(page(), "utf-8")
