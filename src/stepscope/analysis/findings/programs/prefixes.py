"""Programs of JAX that compute all tokens of a text again for each new one."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.xla.arguments import Argument
from stepscope.analysis.xla.hlo_module import Shape, read_module
from stepscope.analysis.xla.repeated_calls import Arrivals, codes_by_name, runs_of_programs
from stepscope.analysis.xla.repeats.token_work import TokenWork, token_work, written_tokens
from stepscope.registers.policy.findings import MAJORITY

# A part of a text is written in place, or scattered into it.
_WRITES = (b"dynamic-update-slice", b"scatter")


def programs_over_prefixes(case: Case) -> list[pl.DataFrame]:
    """For each such program event, dur_ns, length, kept_bytes, calls, texts of its kernels over all positions, in the steps.

    `calls`: how often a step computes all positions. `kept_bytes`: what a kernel reads for one position as well. `texts`: how many texts
    begin in a step.
    """
    if case.device is None or case.is_tpu:
        return []
    codes = codes_by_name(case.trace)
    if not any(part in hlo for hlos in codes.values() for hlo in hlos for part in _WRITES):
        return []
    runs = runs_of_programs(case.trace, case.device)
    written = {name: _written(codes[name]) for name in runs if len(codes.get(name, ())) == 1}
    found = []
    for name in written:
        elsewhere = [
            shape
            for other, shapes in written.items()
            if other != name and runs[other] >= MAJORITY * runs[name]
            for shape in shapes
        ]
        (hlo,) = codes[name]
        work = token_work(read_module(hlo), elsewhere)
        if work is not None:
            arrivals = Arrivals(case.trace, runs, codes)
            new = _new_texts(arrivals, work.tokens, runs[name]) / max(1, len(case.lengths))
            found.append(_kernels(case, name, hlo, work, new))
    return [rows for rows in found if len(rows)]


def _written(codes: set[bytes]) -> list[Shape]:
    (hlo,) = codes
    return written_tokens(read_module(hlo)) if any(part in hlo for part in _WRITES) else []


def _new_texts(arrivals: Arrivals, tokens: Shape, runs: int) -> int:
    """How many arrays of tokens arrive in the steps beside those with one more token, of which each run makes one."""
    return max(0, arrivals.of(Argument(0, "", tokens)) + arrivals.unknown - runs)


def _kernels(case: Case, name: str, hlo: bytes, work: TokenWork, new: float) -> pl.DataFrame:
    rows = part_of_program(case, name, hlo, work.kept_bytes)
    times = rows["instruction"].drop_nulls().value_counts()["count"]
    calls = float(times.median() or 1) / max(1, len(case.lengths))  # type: ignore[arg-type]
    calls = max(1.0, calls)
    # Of several calls the first may be given a text that was on the device before. One call that returns its text goes on with it.
    texts = 1.0 if calls > 1 else min(1.0, new)
    kept = pl.DataFrame(
        {"instruction": list(work.kept_bytes), "kept_bytes": list(work.kept_bytes.values())},
        schema={"instruction": pl.String, "kept_bytes": pl.Int64},
    )
    rows = rows.join(kept, on="instruction", how="left", maintain_order="left")
    return rows.select(
        "event",
        dur_ns=case.trace.events["dur_ns"].gather(rows["event"]),
        length=pl.lit(work.length, pl.Int64),
        kept_bytes=pl.col("kept_bytes").fill_null(0),
        calls=pl.lit(calls, pl.Float64),
        texts=pl.lit(texts, pl.Float64),
    )
