"""docs/trust.md, from the trials that were kept: `python -m benchmarks.trying.page docs/trust.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from stepscope.trial.recorded import ENDING, Row, read_rows, trials_table, trust_table

FOLDER = Path(__file__).parent / "recorded"
PAGE = Path(__file__).parents[2] / "docs" / "trust.md"
_HEAD = """# Promised and measured

A finding promises a speed-up. [`stepscope try`](try.md) makes the change and measures it. This page compares both for every recorded trial.
`stepscope try --record FILE` records one, and `make bench` adds those of the machine that it runs on. This page is generated:
`python -m benchmarks.trying.page docs/trust.md`.

A promise **held** if the middle of the measured interval is inside the promised one, or at most 15 % outside while the two overlap. Both are
speed-ups over the unchanged job. A change that is only part of a finding's advice, or that no finding suggests, has no promise.
"""
_JOBS = """
The jobs are in `benchmarks/trying/jobs`: scripts with one everyday mistake each, written for this page, so these figures are optimistic. The
[blind trials](report/trials.md) are the harder test.

Two rows of the H200 have no promise although one was printed: at that time, stepscope printed the `fp32-matmul` promise for bfloat16, 9.30 (7.44–11.71), for
`tf32`, and the `launch-bound` promise for CUDA graphs, 6.81 (4.91–9.64), for `compile`. Neither would have held. The later trial of `tf32` has its
own promise. `launch-bound` promises a CUDA graph of the whole step; `compile-reduce-overhead` captures only the model, and loss and optimizer
stay eager: its promise did not hold and is no longer printed. Trials of `empty_cache`, `optimizer_loop` and the first of `fp32_mlp` have only one round: they were cut short.
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
