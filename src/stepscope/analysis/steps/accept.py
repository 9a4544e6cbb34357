"""Whether what a source proposes are steps: the same questions for every source.

A period is refused if two or more of them are inside one op, one module, one graph launch or one step of an engine; if it is
shorter than a launch; or if the work that is launched in it is less than 90 % of the recording's, without the kernels that
a compiler tries out while it compiles. A period
that shows nothing of a loop (an update, a batch, a wait for the device, a copy to it) but that it repeats is more often a
layer than a step: it has to account for nearly everything.
"""

from __future__ import annotations

from functools import cached_property

import polars as pl

from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.names import compiler_names
from stepscope.analysis.steps.candidate import Candidate
from stepscope.analysis.steps.known_annotations import TRAINER, owner_of
from stepscope.analysis.steps.work import DEVICE_WORK, place_in, recorded_work
from stepscope.lazy import dataclass
from stepscope.native.host import lineage as codes
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.steps import EVEN_WORK, WORK_OF_BARE_PERIODS, WORK_OF_STEPS
from stepscope.trace.frames import take_largest, take_median, take_smallest
from stepscope.trace.lookup import names_of
from stepscope.trace.trace import Trace

# What a loop is never inside of: a forward pass, a compiled function, a graph's launch.
_WHOLE_PASS = (
    r"^nn\.Module: |torch/nn/modules/module\.py\(\d+\): _?(wrapped_)?call_impl$|GraphLaunch|^CompiledFunction"
    r"|^## Call CompiledFxGraph|^Torch-Compiled Region"
)


@dataclass
class Judge:
    """Judges the proposals for one recording; what that needs of it is computed once."""

    trace: Trace

    @cached_property
    def work(self) -> pl.DataFrame:
        """All work of the recording, by when it was launched, without what a compiler tried out."""
        work = recorded_work(self.trace)
        tried = place_in(work["at_ns"], self._compiling).is_not_null()
        return work.filter(~tried) if not tried.all() else work

    @cached_property
    def _compiling(self) -> pl.DataFrame:
        """start_ns, end_ns: when the host compiled; each span reaches as far as any before it."""
        events = self.trace.events
        names = compiler_names(names_of(events))
        if names.is_empty():
            return pl.DataFrame(schema={"start_ns": pl.Int64, "end_ns": pl.Int64})
        host = self.trace.tracks.filter(pl.col("what") == "host")["id"]
        found = events.filter(
            pl.col("name").is_in(names.implode()),
            pl.col("track").is_in(host.implode()),
            pl.col("kind") != "op",
            pl.col("dur_ns") > 0,
        )
        return (
            found.select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
            .sort("start_ns")
            .with_columns(pl.col("end_ns").cum_max())
        )

    def accepts(self, candidate: Candidate, left_out: pl.DataFrame) -> bool:
        """Whether these are steps. `left_out` are spans that are known not to be steps: warm-up, pieces at the ends."""
        spans = candidate.spans
        if spans.is_empty():
            return False
        if candidate.chosen:
            return True
        if candidate.guessed and (self._inside_one(spans) or self._shorter_than_launch(spans)):
            return False
        if candidate.on_device and self._shares_launches(spans):
            return False
        if not self.has_device and not self._fills(candidate):
            return False
        if not self.has_device and not candidate.guessed:
            return True
        needed = WORK_OF_STEPS
        if candidate.guessed and not candidate.trained and not self._shows_loop(candidate):
            needed = WORK_OF_BARE_PERIODS
        place = self._place(candidate)
        return self._launched_share(candidate, place, left_out) >= needed and (
            not candidate.guessed or candidate.trained or self._even(place, len(spans))
        )

    @cached_property
    def has_device(self) -> bool:
        """Whether the work is that of a device."""
        return not self.work.is_empty() and self.trace.events["kind"][int(self.work["id"][0])] in DEVICE_WORK

    def _fills(self, candidate: Candidate) -> bool:
        """Without a device, steps are known by their time: markers as they are, others if they fill enough of it."""
        spans, events = candidate.spans, self.trace.events
        low, high = int(spans["start_ns"][0]), int(spans["end_ns"][-1])
        if len(spans) == 1 or (candidate.guessed and not candidate.trained):
            low = take_smallest(events["start_ns"])
            high = take_largest(events["start_ns"] + events["dur_ns"])
        return int((spans["end_ns"] - spans["start_ns"]).sum()) >= candidate.least_fill * (high - low)

    def _place(self, candidate: Candidate) -> pl.Series:
        """In which of the spans each piece of work was launched; ran, if the spans are a device's own."""
        return place_in(self._when(candidate), candidate.spans)

    def _when(self, candidate: Candidate) -> pl.Series:
        return self.work["start_ns" if candidate.on_device else "at_ns"]

    def _launched_share(self, candidate: Candidate, place: pl.Series, left_out: pl.DataFrame) -> float:
        """How much of the work was launched in the spans: of all, or from the first to the last where a loop is sure."""
        spans, when = candidate.spans, self._when(candidate)
        inside = place.is_not_null()
        counts = place_in(when, left_out.sort("start_ns")).is_null() | inside
        is_sure = candidate.trained if candidate.guessed else not (candidate.once and len(spans) == 1)
        if is_sure and (candidate.trained or not candidate.on_device):
            counts &= when.is_between(int(spans["start_ns"][0]), int(spans["end_ns"][-1]))
        total = int(self.work["ns"].filter(counts).sum())
        return int(self.work["ns"].filter(inside & counts).sum()) / total if total else 1.0

    def _even(self, place: pl.Series, count: int) -> bool:
        """Whether the typical period has its part of the work: else something else repeats beside the work."""
        held = (
            pl.DataFrame({"place": place, "ns": self.work["ns"]}).drop_nulls().group_by("place").sum()["ns"]
        )
        total = int(held.sum())
        each = pl.concat([held, pl.zeros(count - len(held), dtype=held.dtype, eager=True)])
        return not total or take_median(each) * count >= EVEN_WORK * total

    def _inside_one(self, spans: pl.DataFrame) -> bool:
        """Whether several of the spans are inside one event that a loop is never in."""
        if len(spans) < 2:
            return False
        track = int(spans["track"][0])
        events = self.trace.events.filter((pl.col("track") == track) & (pl.col("dur_ns") > 0))
        around = events.filter(
            (pl.col("kind") == "op") | pl.col("name").is_in(self._whole_passes.implode())
        ).select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        first = spans["start_ns"].search_sorted(around["start_ns"], side="left").cast(pl.Int64)
        last = spans["end_ns"].search_sorted(around["end_ns"], side="right").cast(pl.Int64)
        return bool((last - first >= 2).any())

    @cached_property
    def _whole_passes(self) -> pl.Series:
        names = names_of(self.trace.events)
        text = names.cast(pl.String)
        found = self.trace.events.filter(pl.col("kind") == "annotation")
        # A marker that is no step any more never ended: a loop without step() is inside it.
        is_open = found["name"].cast(pl.String).str.starts_with("ProfilerStep") & found["role"].ne_missing(
            "step"
        )
        annotated = set(found.filter(~is_open)["name"].cast(pl.String).drop_nulls())
        engines = [name for name in annotated if owner_of(name) not in (None, TRAINER)]
        passes: pl.Series = names.filter(text.str.contains(_WHOLE_PASS) | text.is_in(engines))
        return passes

    def _shorter_than_launch(self, spans: pl.DataFrame) -> bool:
        launches = self.work["launch"].drop_nulls().unique()
        usual = self.trace.events["dur_ns"].gather(launches).median()
        length = (spans["end_ns"] - spans["start_ns"]).median()
        return isinstance(usual, int | float) and isinstance(length, int | float) and length < usual

    def _shares_launches(self, spans: pl.DataFrame) -> bool:
        """Whether work of one launch is in several of the spans: they are parts of a graph, not steps."""
        rows = self.work.with_columns(place=place_in(self.work["start_ns"], spans)).drop_nulls(
            ["place", "launch"]
        )
        return bool((rows.group_by("launch").agg(pl.col("place").n_unique())["place"] > 1).any())

    def _shows_loop(self, candidate: Candidate) -> bool:
        """Whether most of the spans hold a wait for the device, a request for a batch, an update or a copy from the host."""
        if candidate.on_device:
            return False
        code, events, spans = self._codes, self.trace.events, candidate.spans
        of_loop = (code == codes.WAIT_DEVICE) | (code == codes.INPUT)
        of_loop = of_loop | (events["role"] == "optimizer").fill_null(False)
        host = self.trace.tracks.filter(pl.col("what") == "host")["id"]
        marks = events.filter(of_loop & events["track"].is_in(host.implode()))["start_ns"]
        copies = self.trace.copies.filter(pl.col("direction").cast(pl.String) == "HtoD")["event"]
        launched = self.work.filter(pl.col("id").is_in(copies.implode()))["at_ns"]
        held = place_in(pl.concat([marks, launched]), spans).drop_nulls().n_unique()
        return held > MAJORITY * len(spans)

    @cached_property
    def _codes(self) -> pl.Series:
        return host_codes(self.trace)
