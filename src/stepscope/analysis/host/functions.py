"""Functions of the job: where they are, what a whole call of one takes, and which of them ran in slow steps alone."""

from __future__ import annotations

import re
from functools import cached_property

import polars as pl

from stepscope.analysis.host.activity import self_time
from stepscope.analysis.host.causes import host_codes, is_wait
from stepscope.analysis.host.place import Place
from stepscope.lazy import dataclass
from stepscope.native.host.lineage import CONTEXT
from stepscope.registers.policy.findings import ELSEWHERE_TOO
from stepscope.trace.frames import conform
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

# PyTorch writes `train.py(12): step`, JAX `$train.py:12 step`; JAX leaves out the folder.
_PLACE = re.compile(
    r"^(?:\$(?P<jax>[^\s:]+\.py):(?P<jax_line>\d{1,9}) |(?P<file>.+?)\((?P<line>\d{1,9})\): )(?P<function>.+)$"
)
EXTRA = {
    "name": pl.String, "frame": pl.UInt32, "slow_ns": pl.Int64, "usual_ns": pl.Int64, "self_extra_ns": pl.Int64,
    "extra_ns": pl.Int64, "only_slow": pl.Boolean,
}  # fmt: skip


def place_of(name: str | None) -> Place | None:
    """The place that the name of a Python frame gives; None for a built-in, an annotation or an op."""
    found = _PLACE.match(name or "")
    if found is None:
        return None
    file, line = found["file"] or found["jax"], found["line"] or found["jax_line"]
    return Place(file, int(line), found["function"])


def where(trace: Trace, events: pl.Series) -> list[Place]:
    """The places of some events, each once, in order: of annotations that of the function around them."""
    frames = _around_annotations(trace.events, events.drop_nulls())
    names = trace.events["name"].gather(frames).cast(pl.String).unique(maintain_order=True)
    return [place for name in names if (place := place_of(name)) is not None]


def _around_annotations(events: pl.DataFrame, chosen: pl.Series) -> pl.Series:
    annotated = events["kind"].gather(chosen) == "annotation"
    if not annotated.any():
        return chosen
    around = ancestors(events, events["kind"] == "python").gather(chosen)
    return pl.select(pl.when(annotated).then(around).otherwise(chosen)).to_series()


@dataclass(frozen=True)
class Calls:
    """All calls of some functions. `inside`: for every event of the host whether it is one of the calls or inside one."""

    trace: Trace
    inside: pl.Series

    @cached_property
    def launched(self) -> pl.Series:
        """Device work that was launched in the calls: kernels, copies and memsets."""
        links = self.trace.links.filter(pl.col("why") == "launch")
        found: pl.Series = links["to"].filter(self.inside.gather(links["from"])).unique()
        return found

    @cached_property
    def copies(self) -> pl.Series:
        """The copies among them."""
        found: pl.Series = self.launched.filter(
            self.trace.events["kind"].gather(self.launched).is_in(["copy", "memset"])
        )
        return found

    @cached_property
    def waits(self) -> pl.Series:
        """Events in which the calls wait for the device."""
        found: pl.Series = self.trace.events["id"].filter(is_wait(self.trace) & self.inside)
        return found

    @cached_property
    def belongs(self) -> pl.Series:
        """For every event, of host and device, whether it belongs to the calls."""
        return self.inside.scatter(self.launched, True) if len(self.launched) else self.inside

    def owns(self, slices: pl.DataFrame) -> pl.Series:
        """Which slices of an account are the calls' doing."""
        found: pl.Series = self.belongs.gather(slices["named_by"]).fill_null(False)
        return found


def calls_of(trace: Trace, frames: pl.Series) -> Calls:
    """The whole calls of the functions that these events are calls of, also the other calls of the same functions.

    A call is its Python, its ops and waits, and what it launches; the backward pass of its ops is none of it.
    """
    events = trace.events
    names = events["name"].gather(frames.drop_nulls().unique()).unique()
    called = events["name"].is_in(names.implode()).fill_null(False) & events["kind"].is_in(
        ["python", "annotation", "op", "span"]
    )
    return Calls(trace, at_or_inside(events, called))


def functions_of_slow_steps(trace: Trace, host: pl.DataFrame, slow: pl.Series) -> pl.DataFrame:
    """What functions and annotations took in the slow steps beyond what they take in the others, per step.

    `host`: step, start_ns and end_ns of all steps on the host. slow_ns and usual_ns are of whole calls, self_extra_ns is of self time;
    only_slow: it hardly runs in the other steps. Those come first, the longest first: the outermost of several.
    """
    calls = _calls_in_steps(trace, host)
    is_slow = pl.col("step").is_in(slow.implode())
    counts = host["step"].is_in(slow.implode())
    slow_steps, other_steps = int(counts.sum()), int((~counts).sum())
    if calls.is_empty() or not slow_steps or not other_steps:
        return pl.DataFrame(schema=EXTRA)
    grouped = calls.group_by("name").agg(
        *(
            (pl.col(column).filter(chosen).sum() / count).cast(pl.Int64).alias(f"{which}_{column}")
            for column in ("ns", "self_ns")
            for which, chosen, count in (("slow", is_slow, slow_steps), ("usual", ~is_slow, other_steps))
        ),
    )
    longer = grouped.with_columns(
        extra_ns=pl.col("slow_ns") - pl.col("usual_ns"),
        self_extra_ns=pl.col("slow_self_ns") - pl.col("usual_self_ns"),
        only_slow=pl.col("usual_ns") <= ELSEWHERE_TOO * pl.col("slow_ns"),
    ).filter(pl.col("extra_ns") > 0)
    found = longer.join(_longest_calls(calls, longer["name"]), on="name").cast({"name": pl.String})
    ranked = found.sort(["only_slow", "extra_ns", "name"], descending=[True, True, False])
    return conform(ranked, EXTRA)


def _longest_calls(calls: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """name, frame: the longest call of each of these functions."""
    mine = calls.filter(pl.col("name").is_in(names.implode()))
    return mine.group_by("name").agg(frame=pl.col("id").sort_by("ns").last())


def _calls_in_steps(trace: Trace, host: pl.DataFrame) -> pl.DataFrame:
    """id, name, step, ns, self_ns of frames and of users' annotations that end in the step they began in.

    A function that calls itself counts once: `ns` is 0 inside a call of the same name.
    """
    events = trace.events
    named = (events["kind"] == "python") | (host_codes(trace) == CONTEXT)
    above = events["name"].gather(events["parent"])
    table = events.select("id", "name", "step", "start_ns", "dur_ns").with_columns(
        self_ns=self_time(events), above=above
    )
    ends = host.select("step", "end_ns").unique("step", keep="last")
    inside = table.filter(named & events["step"].is_not_null()).join(ends, on="step")
    is_repeated = (pl.col("above") == pl.col("name")).fill_null(False)
    inside = inside.with_columns(ns=pl.when(is_repeated).then(0).otherwise("dur_ns"))
    kept = inside.filter(pl.col("start_ns") + pl.col("dur_ns") <= pl.col("end_ns"))
    return kept.select("id", "name", "step", "ns", "self_ns")
