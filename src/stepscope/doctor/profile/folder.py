"""Checks that go beyond the report's problems: no profile at all, the wrong folder, a file too large, data not asked for."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.capture_quality.coverage import coverage
from stepscope.analysis.capture_quality.vendors import VENDOR_TOOLS
from stepscope.analysis.ops.calls import op_calls
from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.profile.subject import Examined, needs_profile
from stepscope.errors import NothingFound, UnreadableFile
from stepscope.formats.tf1 import EVENT_FILES
from stepscope.profiles.find.nothing_found import nearby
from stepscope.profiles.find.runs import in_profile_folder
from stepscope.units import count, size

CHECKS: Checks[Examined] = Checks("profile")
LARGE_FILE = 500 << 20
MANY_EVENTS = 5_000_000
_NEARLY_ALL = 0.95


@CHECKS.add("nothing-found")
def nothing_found(subject: Examined) -> Iterator[Sign]:
    """What was looked at, why each file is none, and where there may be one."""
    if isinstance(subject.error, NothingFound):
        advice = subject.error.fix or ""
        elsewhere = nearby(subject.path)
        also = f"\nA profile was found in {elsewhere}." if elsewhere else ""
        is_keras = _is_of_keras(subject)
        case = "keras" if is_keras else "elsewhere" if elsewhere else "explained" if advice else ""
        yield Sign(subject.error.what, case, advice=advice, also=also)


def _is_of_keras(subject: Examined) -> bool:
    """Whether Keras' TensorBoard callback wrote here: event files below train or validation."""
    return any(
        EVENT_FILES in each.path.rsplit("/", 1)[-1]
        and each.path.split("/")[-2:-1] in (["train"], ["validation"])
        for each in subject.catalog.skipped
    )


@CHECKS.add("not-a-profile")
def not_a_profile(subject: Examined) -> Iterator[Sign]:
    """What the file seems to be instead."""
    if isinstance(subject.error, UnreadableFile):
        advice = subject.error.fix or ""
        yield Sign(subject.error.what, "explained" if advice else "", advice=advice)


@CHECKS.add("wrong-logdir", needs=needs_profile)
def wrong_logdir(subject: Examined) -> Iterator[Sign]:
    """A folder at or below plugins, or xplane.pb files outside of it."""
    files = [trace.info.path for trace in subject.profile.traces] if subject.profile is not None else []
    planes = [path for path in files if ".xplane.pb" in path]
    if not subject.is_folder or not planes:
        return
    folder = planes[0].rpartition("/")[0]
    if not in_profile_folder(folder):
        run = f"{subject.path.rstrip('/')}/plugins/profile/run1"
        yield Sign(f"{planes[0]} is not in plugins/profile/<run>.", "outside", run=run, folder=folder)
        return
    logdir = folder.rsplit("/", 3)[0]
    if len(subject.path.rstrip("/")) > len(logdir):
        yield Sign(f"{subject.path} is inside a logdir.", logdir=logdir)


@CHECKS.add("huge-trace", needs=needs_profile)
def huge_trace(subject: Examined) -> Iterator[Sign]:
    """By bytes on the disk, and by events."""
    for path, found in subject.sizes.items():
        if found > LARGE_FILE:
            yield Sign(f"{path} has {size(found)}.")
    for trace in subject.profile.traces if subject.profile is not None else []:
        if len(trace.events) > MANY_EVENTS and subject.sizes.get(trace.info.path, 0) <= LARGE_FILE:
            yield Sign(f"{trace.info.path} holds {count(len(trace.events))} events.")


def _is_torch(subject: Examined) -> bool:
    """Whether PyTorch's own profiler recorded it."""
    info = subject.profile.traces[0].info if subject.profile is not None else None
    return info is not None and info.framework == "pytorch" and info.format not in VENDOR_TOOLS


def _gap(subject: Examined, what: str) -> Iterator[Sign]:
    """What the first rank's coverage says is missing altogether, and why."""
    if subject.profile is None:
        return
    trace = subject.profile.traces[0]
    calls = op_calls(trace)
    for gap in coverage(trace, calls, None).gaps if len(calls) else []:
        if gap["what"] == what and float(str(gap["share"])) >= _NEARLY_ALL:
            yield Sign(str(gap["reason"]), "" if _is_torch(subject) else "no-option")


@CHECKS.add("no-shapes", needs=needs_profile)
def no_shapes(subject: Examined) -> Iterator[Sign]:
    """The report's coverage of shapes."""
    return _gap(subject, "shapes")


@CHECKS.add("no-stacks", needs=needs_profile)
def no_stacks(subject: Examined) -> Iterator[Sign]:
    """The report's coverage of stacks."""
    return _gap(subject, "stacks")


@CHECKS.add("no-memory", needs=needs_profile)
def no_memory(subject: Examined) -> Iterator[Sign]:
    """The report's coverage of memory, where there is no allocation at all."""
    if subject.profile is None or not subject.profile.traces[0].memory.is_empty():
        return
    if subject.profile.traces[0].info.format in VENDOR_TOOLS:
        return
    yield from _gap(subject, "memory")
