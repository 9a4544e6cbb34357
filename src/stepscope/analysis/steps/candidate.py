"""What a source proposes as the steps of a recording, before it is judged."""

from __future__ import annotations

import polars as pl

from stepscope.lazy import dataclass

SPANS = {"step": pl.Int32, "track": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64}
NO_STEPS = pl.DataFrame(schema=SPANS)


@dataclass(frozen=True)
class Candidate:
    """`spans`: step, track, start_ns, end_ns as the host marks them, in time order.

    `host`: the same rows with the time that leads up to each step; they are what the report calls the steps. Without
    it the spans are. `windows`: where each step is on each device, if the source knows it better than launches do.
    `guessed`: nothing says that these are steps but that they repeat. `on_device`: the spans are of a device's own clock
    and hold its work by when it ran. `chosen`: the user asked for them, so that they are not judged.
    """

    source: str
    name: str | None
    confidence: str
    spans: pl.DataFrame
    host: pl.DataFrame | None = None
    windows: pl.DataFrame | None = None
    guessed: bool = False
    on_device: bool = False
    chosen: bool = False
    trained: bool = False  # each holds an update of the weights or a request for a batch
    once: bool = False  # it may come once, and has to hold nearly all work of the recording then
    least_fill: float = (
        0.0  # of the time that annotations have to fill where there is no device to judge them by
    )
    may_hold_loop: bool = False  # it comes once under a name that people also give to a whole loop
    closed: bool = False  # time between two steps belongs to neither

    @property
    def steps(self) -> pl.DataFrame:
        """The rows that become the steps on the host."""
        return self.spans if self.host is None else self.host
