"""What of two runs cannot be compared, and why: told, rather than compared all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepscope.diffs.data.model import Run
from stepscope.diffs.data.samples import Samples, Side

# As devices are described by the formats.
_DEVICE_NAMES = ("name", "gpu_device_name", "device_type", "plane")
MOST_OUTSIDE = 0.5
_FRAMEWORKS = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
# Warnings that say that something of the run is not there; errors always do.
_LOST = (
    "missing-ranks", "duplicate-rank", "never-stopped", "split-runs", "ranks-apart", "two-workers",
    "dropped-events", "buffer-overflow", "event-cap", "too-many-events", "unreadable-file", "analysis-failed",
)  # fmt: skip
MOST_PROBLEMS = 4


def run_of(side: Side) -> Run:
    """The run in a few words."""
    profile, steps = side.report["profile"], side.report["steps"]
    return Run(
        path=profile["path"],
        paths=list(side.paths),
        name=profile["name"],
        framework=profile["framework"],
        devices=sorted({_device(each) for each in profile["devices"]}),
        hosts=list(profile["hosts"]),
        ranks=len(profile["ranks"]),
        world_size=profile["world_size"],
        steps=len(side.samples.cells),
        step_source=steps["source"],
        versions=dict(profile["versions"]),
    )


def _device(told: Mapping[str, Any]) -> str:
    return next((str(told[key]) for key in _DEVICE_NAMES if told.get(key)), "unknown device")


def same_frameworks(a: Run, b: Run) -> bool:
    """Whether names of ops mean the same thing in both."""
    return a.framework == b.framework or None in (a.framework, b.framework)


def same_versions(a: Run, b: Run) -> bool:
    """Whether the same names of functions and scopes are to be expected."""
    return not _other_versions(a, b)


def _other_versions(a: Run, b: Run) -> list[str]:
    return sorted(
        f"{name} {a.versions[name]} → {b.versions[name]}"
        for name in a.versions.keys() & b.versions.keys()
        if a.versions[name] != b.versions[name]
    )


def same_measure(a: Run, b: Run) -> bool:
    """Whether steps are held against steps: a whole recording is no step."""
    return (a.step_source == "none") == (b.step_source == "none")


def steps_wait(a: Side, b: Side) -> bool:
    """Whether the ops of a step are in that step: a host that hands work to other threads may end its steps long before."""
    return max(a.outside, b.outside) <= MOST_OUTSIDE


def remarks(a: Run, b: Run, first: Side, second: Side) -> Iterator[str]:
    """What the reader must know before comparing."""
    ours, theirs = first.samples, second.samples
    if a.path == b.path and not (a.paths or b.paths):
        yield "A and B are the same profile."
    for name, side in (("A", first), ("B", second)):
        yield from (f"{name}: {problem}" for problem in lost(side.report))
    for name, side in (("A", first), ("B", second)):
        if side.outside > MOST_OUTSIDE:
            yield (
                f"The steps of {name} do not wait for their work: {100 * side.outside:.0f} % of its ops' time lies outside of "
                "them, so only whole steps are compared. Let each step wait for its result (jax.block_until_ready)."
            )
    if not same_frameworks(a, b):
        yield (
            f"A is {_FRAMEWORKS.get(str(a.framework), a.framework)} and B is {_FRAMEWORKS.get(str(b.framework), b.framework)}: "
            "their ops and kernels have other names, so only steps, parts, memory and precision are compared."
        )
    if a.devices != b.devices:
        yield f"A ran on {_listed(a.devices)}, B on {_listed(b.devices)}: times differ for that reason alone."
    changed = _other_versions(a, b)
    if changed:
        yield f"Other versions: {', '.join(changed)}. Ops and kernels may have other names."
    if (a.world_size or a.ranks) != (b.world_size or b.ranks):
        yield (
            f"A has {a.world_size or a.ranks} ranks and B {b.world_size or b.ranks}: figures are per step and rank, "
            "and collectives do other work."
        )
    yield from _recorded(ours, theirs)
    yield from _steps(a, b)


def lost(report: Mapping[str, Any]) -> list[str]:
    """What of a run could not be read or was not recorded, in a line each."""
    found = [
        f"{problem['title']}. {problem['detail']}"
        for problem in report["problems"]
        if problem["severity"] == "error" or (problem["severity"] == "warning" and problem["code"] in _LOST)
    ]
    more = len(found) - MOST_PROBLEMS
    return (
        found if more <= 0 else [*found[:MOST_PROBLEMS], f"There are {more} problems more; see its report."]
    )


def _recorded(ours: Samples, theirs: Samples) -> Iterator[str]:
    for what, column in (("shapes", "shapes"), ("module paths or name scopes", "scope")):
        has = [bool(samples.ops[column].count()) for samples in (ours, theirs)]
        if has[0] != has[1]:
            yield f"Only {'A' if has[0] else 'B'} has recorded {what}: ops are matched without them."
    has_functions = [bool(len(samples.functions)) for samples in (ours, theirs)]
    if has_functions[0] != has_functions[1]:
        yield f"Only {'A' if has_functions[0] else 'B'} has recorded Python functions: idle time has other names in the other run."
    has_memory = [bool(samples.memory["peak_bytes"].count()) for samples in (ours, theirs)]
    if has_memory[0] != has_memory[1]:
        yield f"Only {'A' if has_memory[0] else 'B'} has recorded memory: it is not compared."
    has_device = [bool(samples.kernels["ns"].sum()) for samples in (ours, theirs)]
    if has_device[0] != has_device[1]:
        yield f"Only {'A' if has_device[0] else 'B'} has kernels of a device: ops are compared by their time on the host."


def _steps(a: Run, b: Run) -> Iterator[str]:
    for name, run in (("A", a), ("B", b)):
        if run.step_source == "none":
            alone = "" if a.step_source == b.step_source else " It is not held against the other's steps."
            yield f"{name} has no steps: its whole recording counts as one, and its noise cannot be told.{alone}"
        elif run.step_source == "inferred":
            yield f"{name} marks no steps: they are inferred from what repeats, and may be something else."
        elif run.steps < 2:
            yield f"{name} has one whole step: its noise cannot be told. Record at least five."


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "no device"
