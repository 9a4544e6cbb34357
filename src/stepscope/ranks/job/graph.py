"""A job as a graph that can be replayed: work of ranks, what has to be over before it, and meetings of several ranks.

Nodes are work on one rank in one step. A node begins when all nodes before it are over. A member of a meeting (a collective, or a
send and its receive) is over its own duration after the last member has come; all other nodes their duration after they begin.
"""

from __future__ import annotations

from functools import cached_property

import polars as pl

from stepscope.lazy import dataclass
from stepscope.native.job.rendezvous import NONE, Rendezvous
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take_largest


@dataclass(frozen=True)
class JobGraph:
    """`nodes`: `step`, `ns`, `meeting` (a number, or null) and whatever else its maker needs. `edges`: `before` and `after`, rows of nodes."""

    nodes: pl.DataFrame
    edges: pl.DataFrame

    @cached_property
    def _played(self) -> Rendezvous:
        edges = self.edges.drop_nulls().select(pl.col("before", "after").cast(pl.UInt32))
        return Rendezvous(
            buffer(edges["before"].rechunk()),
            buffer(edges["after"].rechunk()),
            buffer(self._meetings.fill_null(NONE).rechunk()),
            take_largest(self._meetings, -1) + 1,
        )

    @cached_property
    def _meetings(self) -> pl.Series:
        """Numbered from 0 on, without gaps."""
        numbers: pl.Series = self.nodes["meeting"].rank("dense").cast(pl.UInt32) - 1
        return numbers

    @property
    def is_complete(self) -> bool:
        """Whether every node can be replayed: none waits for itself."""
        return self._played.reached == len(self.nodes)

    def play(self, ns: pl.Series | None = None) -> tuple[pl.Series, pl.Series]:
        """When each node begins and when it is over, with these durations instead of its own."""
        durations = self.nodes["ns"] if ns is None else ns
        starts, ends = self._played.play(buffer(durations.cast(pl.Int64).rechunk()))
        return series("start_ns", starts, pl.Int64), series("end_ns", ends, pl.Int64)

    def step_ns(self, ns: pl.Series | None = None) -> float:
        """The mean length of a step: from its first start to its last end."""
        lengths = self.lengths(ns)
        return float(lengths["ns"].mean() or 0.0)  # type: ignore[arg-type]

    def lengths(self, ns: pl.Series | None = None) -> pl.DataFrame:
        """step, ns."""
        start, end = self.play(ns)
        played = pl.DataFrame({"step": self.nodes["step"], "start": start, "end": end})
        spans = played.group_by("step").agg(ns=pl.col("end").max() - pl.col("start").min())
        return spans.sort("step")
