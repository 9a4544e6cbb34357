"""What a capture holds that makes it less than it seems: only a warm-up, two workers, graphs without ops, no facts of kernels."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.capture_quality.vendors import VENDOR_TOOLS
from stepscope.analysis.graph_captures import only_captures
from stepscope.analysis.steps.find import Steps
from stepscope.registers.calibration.launches import TRACE_JSON_EVENTS
from stepscope.registers.policy.capture import GRAPHS_HIDE_OPS, MANY_EVENTS, MOSTLY_PYTHON, NAMED_PROCESSES
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.graphs import captured_calls
from stepscope.trace.problems import Problem, problem
from stepscope.trace.trace import Trace
from stepscope.units import percent


def content_problems(trace: Trace, steps: Steps) -> Iterator[Problem]:
    """All of them for one rank."""
    yield from _only_warm_up(trace, steps)
    yield from _only_captures(trace, steps)
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
        yield problem("only-warm-up", f"Compiling takes more than half of each of the {len(shares):,} steps.")


def _only_captures(trace: Trace, steps: Steps) -> Iterator[Problem]:
    """Every step is the capture of a graph."""
    if only_captures(trace, steps):
        recorded = len(captured_calls(trace))
        yield problem(
            "graph-capture", "{count} calls put work into a graph, and no graph is launched.", count=recorded
        )


def _two_workers(trace: Trace) -> Iterator[Problem]:
    """Several processes mark steps of their own, and the reader did not say so already."""
    if "two-workers" in trace.problems["code"]:
        return
    marking = trace.events["track"].filter(trace.events["role"] == "step")
    if marking.n_unique() < 2:
        return
    marking = marking.unique()
    hosts = trace.tracks.filter((pl.col("what") == "host") & pl.col("id").is_in(marking.implode()))
    processes = hosts["pid"].drop_nulls().unique().sort().to_list()
    if len(processes) > 1:
        yield problem(
            "two-workers",
            f"{{count}} processes mark steps: {', '.join(processes[:NAMED_PROCESSES])}.",
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
        yield problem(
            "graphs-hide-ops",
            f"{{count}} kernels with {percent(lost / total)} of the kernels' time were launched by graphs.",
            count=int(hidden.sum()),
        )


def _kernel_facts(trace: Trace) -> Iterator[Problem]:
    """Kernels of which no occupancy, registers or extents are known; the cores of TPUs have none."""
    kernels = trace.kernels
    if any(device.get("kind") == "tpu" for device in trace.info.devices):
        return
    facts = kernels.select("occupancy", "registers", "blocks_per_sm")
    if trace.info.devices and len(kernels) and all(facts[name].count() == 0 for name in facts.columns):
        yield problem(
            "no-kernel-facts", "{count} kernels, and none has its occupancy or registers.", count=len(kernels)
        )


def _collectives(trace: Trace) -> Iterator[Problem]:
    """Device work by NCCL, and no call that says what it was."""
    work = trace.events.filter((pl.col("kind") == "kernel") & (pl.col("role") == "collective"))
    is_own = trace.info.framework == "pytorch" and trace.info.format not in VENDOR_TOOLS
    if len(work) and trace.collectives.is_empty() and is_own:
        yield problem(
            "unnamed-collectives",
            "{count} kernels of collectives; no event has their bytes or their group.",
            count=len(work),
        )


def _cap(trace: Trace) -> Iterator[Problem]:
    """As many events as the writer of the JSON keeps."""
    is_json = trace.info.format == "chrome" and trace.info.framework in ("jax", "tensorflow")
    if is_json and len(trace.events) >= TRACE_JSON_EVENTS:
        yield problem(
            "event-cap",
            f"It holds {{count}} events; its writer keeps the first {TRACE_JSON_EVENTS:,}.",
            count=len(trace.events),
        )


def _python(trace: Trace) -> Iterator[Problem]:
    """Python calls outnumber all else."""
    python = int((trace.events["kind"] == "python").sum())
    if len(trace.events) >= MANY_EVENTS and python >= MOSTLY_PYTHON * len(trace.events):
        off = "with_stack=False" if trace.info.framework == "pytorch" else "python_tracer_level=0"
        yield problem(
            "mostly-python", f"{{count}} of {len(trace.events):,} events.", count=python, option=off
        )
