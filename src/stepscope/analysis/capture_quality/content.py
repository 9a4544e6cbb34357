"""What a capture holds that makes it less than it seems: only a warm-up, two workers, graphs without ops, no facts of kernels."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.steps.find import Steps
from stepscope.registers.calibration.launches import TRACE_JSON_EVENTS
from stepscope.registers.policy.capture import GRAPHS_HIDE_OPS, MANY_EVENTS, MOSTLY_PYTHON, NAMED_PROCESSES
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.problems import Problem
from stepscope.trace.trace import Trace


def content_problems(trace: Trace, steps: Steps) -> Iterator[Problem]:
    """All of them for one rank."""
    yield from _only_warm_up(trace, steps)
    yield from _two_workers(trace)
    yield from _graphs(trace)
    yield from _kernel_facts(trace)
    yield from _collectives(trace)
    yield from _cap(trace)
    yield from _python(trace)


def _only_warm_up(trace: Trace, steps: Steps) -> Iterator[Problem]:
    """Every step spends most of its time compiling. Compilations inside one another count once."""
    spans = trace.events.filter((pl.col("role") == "compile") & pl.col("step").is_not_null())
    windows = steps.host.group_by("step").agg(ns=(pl.col("end_ns") - pl.col("start_ns")).max())
    if spans.is_empty() or windows.is_empty():
        return
    top = spans.filter(pl.col("depth") == pl.col("depth").min().over("step", "track"))
    spent = top.group_by("step").agg(compiling=pl.col("dur_ns").sum())
    shares = (
        windows.join(spent, on="step", how="left")
        .select(pl.col("compiling").fill_null(0) / pl.col("ns"))
        .to_series()
    )
    if (shares > MAJORITY).all():
        yield Problem(
            "only-warm-up",
            "Only the warm-up was recorded",
            f"Compiling takes more than half of each of the {len(shares):,} steps.",
            "Begin the window later: after the steps in which programs are traced and compiled.",
        )


def _two_workers(trace: Trace) -> Iterator[Problem]:
    """Several processes mark steps of their own, and the reader did not say so already."""
    if "two-workers" in trace.problems["code"]:
        return
    marking = trace.events.filter(pl.col("role") == "step")["track"].unique()
    hosts = trace.tracks.filter((pl.col("what") == "host") & pl.col("id").is_in(marking.implode()))
    processes = hosts["pid"].drop_nulls().unique().sort().to_list()
    if len(processes) > 1:
        yield Problem(
            "two-workers",
            "Several workers are in one file",
            f"{{count}} processes mark steps: {', '.join(processes[:NAMED_PROCESSES])}. Their times are added up as if they were one worker's.",
            "Keep one file per rank; stepscope puts the ranks together itself.",
            count=len(processes),
        )


def _graphs(trace: Trace) -> Iterator[Problem]:
    """Kernels that a graph launched and that no op can be named for. Kernels of XLA carry the name of theirs."""
    kernels = trace.kernels
    if trace.info.framework != "pytorch" or kernels["graph_node"].count() == 0:
        return
    spent = trace.events["dur_ns"].gather(kernels["event"])
    hidden = kernels["graph_node"].is_not_null() & kernels["op"].is_null()
    total, lost = int(spent.sum()), int(spent.filter(hidden).sum())
    if total and lost >= GRAPHS_HIDE_OPS * total:
        yield Problem(
            "graphs-hide-ops",
            "CUDA graphs hide which op a kernel belongs to",
            f"{{count}} kernels with {lost / total:.0%} of the kernels' time were launched by graphs and belong to no op.",
            "Record a few steps without graphs to see their ops; torch.compile makes them with mode='reduce-overhead'.",
            "info",
            int(hidden.sum()),
        )


def _kernel_facts(trace: Trace) -> Iterator[Problem]:
    """Kernels of which no occupancy, registers or extents are known."""
    kernels = trace.kernels
    facts = kernels.select("occupancy", "registers", "blocks_per_sm")
    if trace.info.devices and len(kernels) and all(facts[name].count() == 0 for name in facts.columns):
        yield Problem(
            "no-kernel-facts",
            "Nothing is known of the kernels but their times",
            "{count} kernels, and none tells its occupancy or registers. ROCm's recorder and old ones of CUDA do not write them.",
            "Measure single kernels with the vendor's tool: rocprof-compute, or ncu.",
            "info",
            len(kernels),
        )


def _collectives(trace: Trace) -> Iterator[Problem]:
    """Device work by NCCL, and no call that says what it was."""
    work = trace.events.filter((pl.col("kind") == "kernel") & (pl.col("role") == "collective"))
    if len(work) and trace.collectives.is_empty() and trace.info.framework == "pytorch":
        yield Problem(
            "unnamed-collectives",
            "Collectives without their sizes and groups",
            "{count} kernels of collectives; no event says which bytes they moved, for which group.",
            "Record with PyTorch 2.1 or newer, and record_shapes=True.",
            "info",
            len(work),
        )


def _cap(trace: Trace) -> Iterator[Problem]:
    """As many events as the writer of the JSON keeps."""
    is_json = trace.info.format == "chrome" and trace.info.framework in ("jax", "tensorflow")
    if is_json and len(trace.events) >= TRACE_JSON_EVENTS:
        yield Problem(
            "event-cap",
            "The file stops at a limit on events",
            f"It holds {{count}} events; its writer keeps the first {TRACE_JSON_EVENTS:,} and drops the rest without a word.",
            "Open the xplane.pb beside it, which holds all; record fewer steps, or with python_tracer_level=0.",
            count=len(trace.events),
        )


def _python(trace: Trace) -> Iterator[Problem]:
    """Python calls outnumber all else."""
    python = int((trace.events["kind"] == "python").sum())
    if len(trace.events) >= MANY_EVENTS and python >= MOSTLY_PYTHON * len(trace.events):
        off = "with_stack=False" if trace.info.framework == "pytorch" else "python_tracer_level=0"
        yield Problem(
            "mostly-python",
            "Most of the trace are Python calls",
            f"{{count}} of {len(trace.events):,} events. Recording them slows the host down, and makes the file large.",
            f"Record with {off} where the stacks are not needed.",
            "info",
            python,
        )
