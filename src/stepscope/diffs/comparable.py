"""What of two runs cannot be compared, and why: stated as a caveat instead of being compared anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stepscope.diffs.data.model import Run
from stepscope.diffs.data.samples import Samples, Side
from stepscope.registers.policy.diffs import DIFF_PROBLEMS, WORK_OUTSIDE_STEPS
from stepscope.reports.model.report import Problem, Report

# As devices are described by the formats.
_DEVICE_NAMES = ("name", "gpu_device_name", "device_type", "plane")
_FRAMEWORKS = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
# Warnings that say that something of the run is not there; errors always do.
_LOST = (
    "missing-ranks", "duplicate-rank", "never-stopped", "split-runs", "ranks-apart", "two-workers",
    "dropped-events", "buffer-overflow", "event-cap", "too-many-events", "unreadable-file", "analysis-failed",
)  # fmt: skip


def describe_run(side: Side) -> Run:
    """The run in a few words."""
    profile = side.report.profile
    return Run(
        path=profile.path,
        paths=list(side.paths),
        name=profile.name,
        framework=profile.framework,
        devices=sorted({_name_device(each) for each in profile.devices}),
        hosts=list(profile.hosts),
        ranks=len(profile.ranks),
        world_size=profile.world_size,
        steps=len(side.samples.cells),
        step_source="none" if side.report.steps.source == "whole" else side.report.steps.source,
        versions=dict(profile.versions),
    )


def _name_device(facts: Mapping[str, Any]) -> str:
    """By what the recording says about a device, which differs between formats."""
    return next((str(facts[key]) for key in _DEVICE_NAMES if facts.get(key)), "unknown device")


def have_same_framework(a: Run, b: Run) -> bool:
    """Whether names of ops mean the same thing in both."""
    return a.framework == b.framework or None in (a.framework, b.framework)


def have_same_versions(a: Run, b: Run) -> bool:
    """Whether the same names of functions and scopes are to be expected."""
    return not _list_version_changes(a, b)


def _list_version_changes(a: Run, b: Run) -> list[str]:
    return sorted(
        f"{name} {a.versions[name]} → {b.versions[name]}"
        for name in a.versions.keys() & b.versions.keys()
        if a.versions[name] != b.versions[name]
    )


def do_both_have_steps(a: Run, b: Run) -> bool:
    """Whether both have steps, or neither has: a whole recording is not comparable with a step."""
    return (a.step_source == "none") == (b.step_source == "none")


def do_steps_wait(a: Side, b: Side) -> bool:
    """Whether the ops of a step are in that step: a host that hands work to other threads may end its steps long before."""
    return max(a.outside, b.outside) <= WORK_OUTSIDE_STEPS


def list_caveats(a: Run, b: Run, first: Side, second: Side) -> Iterator[str]:
    """What the reader must know before comparing."""
    if a.path == b.path and not (a.paths or b.paths):
        yield "A and B are the same profile."
    for name, side in (("A", first), ("B", second)):
        yield from (f"{name}: {problem}" for problem in list_losses(side.report))
    for name, side in (("A", first), ("B", second)):
        if side.outside > WORK_OUTSIDE_STEPS:
            yield (
                f"Steps of {name} end before their work does: {100 * side.outside:.0f} % of op time is outside of "
                "steps, so only whole steps are compared. Make each step wait for its result (jax.block_until_ready)."
            )
    yield from _compare_setups(a, b)
    yield from _compare_recorded(first.samples, second.samples)
    yield from _check_steps(a, b)


def _compare_setups(a: Run, b: Run) -> Iterator[str]:
    if not have_same_framework(a, b):
        yield (
            f"A is {_name_framework(a)} and B is {_name_framework(b)}: names of ops and kernels differ, so only "
            "steps, parts, memory and precision are compared."
        )
    if a.devices != b.devices:
        yield f"A ran on {_join_devices(a)}, B on {_join_devices(b)}: times differ for that reason alone."
    changed = _list_version_changes(a, b)
    if changed:
        yield f"Versions differ: {', '.join(changed)}. Ops and kernels may be named differently."
    if (a.world_size or a.ranks) != (b.world_size or b.ranks):
        yield (
            f"A has {a.world_size or a.ranks} ranks and B {b.world_size or b.ranks}: figures are per step and rank, "
            "and collectives do different work."
        )


def list_losses(report: Report) -> list[str]:
    """What of a run could not be read or was not recorded, in a line each."""
    losses = [f"{problem.title}. {problem.detail}" for problem in report.problems if _is_loss(problem)]
    more = len(losses) - DIFF_PROBLEMS
    if more <= 0:
        return losses
    return [*losses[:DIFF_PROBLEMS], f"{more} more problem{'' if more == 1 else 's'}; see the report."]


def _is_loss(problem: Problem) -> bool:
    return problem.severity == "error" or (problem.severity == "warning" and problem.code in _LOST)


# What only one run may have recorded, and what follows from that for the comparison.
_RECORDED: tuple[tuple[Callable[[Samples], bool], str], ...] = (
    (lambda samples: bool(samples.ops["shapes"].count()), "recorded shapes: ops are matched without them."),
    (
        lambda samples: bool(samples.ops["scope"].count()),
        "recorded module paths or name scopes: ops are matched without them.",
    ),
    (
        lambda samples: bool(len(samples.functions)),
        "recorded Python functions: idle time is named differently in the other run.",
    ),
    (lambda samples: bool(samples.memory["peak_bytes"].count()), "recorded memory: it is not compared."),
    (lambda samples: bool(samples.kernels["ns"].sum()), "has device kernels: ops are compared by host time."),
)


def _compare_recorded(a: Samples, b: Samples) -> Iterator[str]:
    for has, consequence in _RECORDED:
        if has(a) != has(b):
            yield f"Only {'A' if has(a) else 'B'} {consequence}"


def _check_steps(a: Run, b: Run) -> Iterator[str]:
    for name, run in (("A", a), ("B", b)):
        if run.step_source == "none":
            alone = "" if do_both_have_steps(a, b) else " It is not compared with the steps of the other run."
            yield f"{name} has no steps: the whole recording counts as one step, and its noise is unknown.{alone}"
        elif run.step_source == "inferred":
            yield f"{name} marks no steps: they are inferred from what repeats, and may be wrong."
        elif run.steps < 2:
            yield f"{name} has only one complete step: its noise is unknown. Record at least five."


def _name_framework(run: Run) -> str:
    return _FRAMEWORKS.get(str(run.framework), str(run.framework))


def _join_devices(run: Run) -> str:
    return ", ".join(run.devices) if run.devices else "no device"
