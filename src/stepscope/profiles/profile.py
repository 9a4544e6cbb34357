"""A profile: the traces of one or many ranks, and their tables as one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.profiles.find.runs import Run
from stepscope.profiles.find.walk import Skipped
from stepscope.profiles.summary import Summary, as_html, as_text
from stepscope.safe import readable
from stepscope.trace.problems import Problems
from stepscope.trace.schema import TABLES, empty
from stepscope.trace.trace import Trace

if TYPE_CHECKING:
    import pandas


class Profile:
    """The recording of one run. Its tables are attributes: `events`, `ops`, `kernels` and the others of the schema.

    With several ranks, each table begins with a column `rank`; with one rank, it is exactly the trace's table. The table
    `traces` is `table("traces")`, since `traces` is the list of them.
    """

    def __init__(
        self,
        path: str,
        traces: Sequence[Trace],
        ranks: Sequence[int],
        *,
        name: str = "",
        problems: Problems | None = None,
        skipped: Sequence[Skipped] = (),
        other_runs: Sequence[Run] = (),
    ) -> None:
        self.path = readable(path)
        self.name = readable(name or path)
        self.traces = list(traces)
        self.ranks = list(ranks)
        self.skipped = list(skipped)
        self.other_runs = list(other_runs)
        self._own_problems = problems or Problems()
        self._tables: dict[str, pl.DataFrame] = {}

    def table(self, name: str) -> pl.DataFrame:
        """The table of all ranks."""
        if name not in TABLES:
            raise StepscopeError(f"No table {name}.", fix=f"Tables: {', '.join(TABLES)}.")
        if name not in self._tables:
            self._tables[name] = self._joined(name)
        return self._tables[name]

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name in TABLES:
            return self.table(name)
        raise AttributeError(f"a Profile has no {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *TABLES})

    def trace(self, rank: int) -> Trace:
        """One rank's trace."""
        if rank not in self.ranks:
            raise StepscopeError(f"No rank {rank}.", fix=f"Available: {self.ranks}.")
        return self.traces[self.ranks.index(rank)]

    def to_pandas(self, name: str = "events") -> pandas.DataFrame:
        """A table as a pandas frame, if pandas is installed."""
        lacking = [package for package in ("pandas", "pyarrow") if find_spec(package) is None]
        if lacking:
            what = f"A pandas frame needs {' and '.join(lacking)}, which is not installed."
            raise StepscopeError(what, fix="Try: pip install 'stepscope[pandas]'")
        return self.table(name).to_pandas()

    def report(self, **options: Any) -> Any:
        """A Report: where the time of its steps went, and what to change. Options as for `stepscope.report`."""
        import stepscope

        return stepscope.report(self, **options)

    def _joined(self, name: str) -> pl.DataFrame:
        frames = [trace.tables[name] for trace in self.traces]
        if name == "problems":
            frames.append(self._own_problems.frame())
        if len(self.traces) == 1:
            return pl.concat(frames) if name == "problems" else frames[0]
        ranks: list[int | None] = [*self.ranks, None]
        marked = [_with_rank(frame, rank) for frame, rank in zip(frames, ranks, strict=False)]
        return pl.concat(marked) if marked else _with_rank(empty(name), None)

    def _summary(self) -> Summary:
        return Summary(self.name, self.traces, self.ranks, self.table("problems"), len(self.other_runs))

    def __repr__(self) -> str:
        return as_text(self._summary())

    def _repr_html_(self) -> str:
        return as_html(self._summary())


def _with_rank(frame: pl.DataFrame, rank: int | None) -> pl.DataFrame:
    """The frame with the rank as its first column; `traces` has one already, which may be unknown."""
    column = pl.lit(rank, dtype=pl.Int32).alias("rank")
    return frame.select(column, pl.exclude("rank"))
