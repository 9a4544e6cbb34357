"""Checks that go beyond the report's problems: no profile at all, the wrong folder, a file too large, data not asked for."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.capture_quality.coverage import coverage
from stepscope.analysis.ops.calls import op_calls
from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.profile.subject import NEVER_WRITTEN, Examined, needs_profile
from stepscope.errors import NothingFound, UnreadableFile
from stepscope.profiles.find.runs import in_profile_folder
from stepscope.units import count, size

CHECKS: Checks[Examined] = Checks("profile", [])
LARGE_FILE = 500 << 20
MANY_EVENTS = 5_000_000
_NEARLY_ALL = 0.95
_ON_DEVICES = "TensorFlow and JAX record the allocations of devices; on the CPU there are none. jax.profiler.save_device_memory_profile shows what is held."
_NO_OPTION = "Nothing to turn on: only PyTorch's profiler has an option for it."


@CHECKS.add(
    "nothing-found",
    "There is no profile here",
    cause="The path is the wrong one, the profiler was never stopped, a remote worker wrote to its own disk, or Keras' TensorBoard callback ran "
    "without profile_batch. Other tools say `No profile data was found` or `No dashboards are active`.",
    fix=NEVER_WRITTEN,
    severity="error",
)
def nothing_found(subject: Examined) -> Iterator[Sign]:
    """What was looked at, why each file is none, and where there may be one."""
    if isinstance(subject.error, NothingFound):
        fix = subject.error.fix or ""
        yield Sign(subject.error.what, fix if "There is one in" in fix else f"{fix}\n{NEVER_WRITTEN}".strip())


@CHECKS.add(
    "not-a-profile",
    "This file is not a profile",
    cause="It is empty, cut before its first event, or something else: an execution trace (observer_0.json), a memory snapshot, an Nsight "
    "report, a notebook.",
    fix="Record a profile with torch.profiler, tf.profiler, jax.profiler or stepscope.",
    severity="error",
)
def not_a_profile(subject: Examined) -> Iterator[Sign]:
    """What the file seems to be instead."""
    if isinstance(subject.error, UnreadableFile):
        yield Sign(subject.error.what, subject.error.fix or "")


@CHECKS.add(
    "wrong-logdir",
    "TensorBoard and XProf would show nothing from this folder",
    cause="They look for <logdir>/plugins/profile/<run>/<host>.xplane.pb. A logdir inside of plugins/profile, or files elsewhere, are "
    "not found: `No profile data was found`. stepscope takes either.",
    fix="Give TensorBoard the folder above plugins.",
    needs=needs_profile,
)
def wrong_logdir(subject: Examined) -> Iterator[Sign]:
    """A folder at or below plugins, or xplane.pb files outside of it."""
    files = [trace.info.path for trace in subject.profile.traces] if subject.profile is not None else []
    planes = [path for path in files if ".xplane.pb" in path]
    if not subject.is_folder or not planes:
        return
    folder = planes[0].rpartition("/")[0]
    if not in_profile_folder(folder):
        run = f"{subject.path.rstrip('/')}/plugins/profile/run1"
        yield Sign(
            f"{planes[0]} is not in plugins/profile/<run>.",
            f"mkdir -p '{run}' && mv '{folder}'/*.xplane.pb '{run}'",
        )
        return
    logdir = folder.rsplit("/", 3)[0]
    if len(subject.path.rstrip("/")) > len(logdir):
        yield Sign(f"{subject.path} is inside of a logdir.", f"tensorboard --logdir '{logdir}'")


@CHECKS.add(
    "huge-trace",
    "The trace is too large for other tools",
    cause="Too many steps, or stacks of everything. Browsers give up at a few hundred megabytes: `Loading data` forever.",
    fix="Record fewer steps: schedule(wait=5, warmup=2, active=3); leave out with_stack where it is not needed. stepscope opens it all the same.",
    needs=needs_profile,
)
def huge_trace(subject: Examined) -> Iterator[Sign]:
    """By bytes on the disk, and by events."""
    for path, found in subject.sizes.items():
        if found > LARGE_FILE:
            yield Sign(f"{path} has {size(found)}.")
    for trace in subject.profile.traces if subject.profile is not None else []:
        if len(trace.events) > MANY_EVENTS and subject.sizes.get(trace.info.path, 0) <= LARGE_FILE:
            yield Sign(f"{trace.info.path} holds {count(len(trace.events))} events.")


def _is_torch(subject: Examined) -> bool:
    return subject.profile is not None and subject.profile.traces[0].info.framework == "pytorch"


def _gap(subject: Examined, what: str) -> Iterator[Sign]:
    """What the first rank's coverage says is missing altogether, and why."""
    if subject.profile is None:
        return
    trace = subject.profile.traces[0]
    calls = op_calls(trace)
    for gap in coverage(trace, calls, None).gaps if len(calls) else []:
        if gap["what"] == what and float(str(gap["share"])) >= _NEARLY_ALL:
            yield Sign(str(gap["reason"]), str(gap["fix"]) or ("" if _is_torch(subject) else _NO_OPTION))


@CHECKS.add(
    "no-shapes",
    "No op has shapes",
    cause="record_shapes was off. Ops cannot be distinguished by size, and FLOPs are unknown.",
    fix="torch.profiler.profile(record_shapes=True)",
    severity="info",
    needs=needs_profile,
)
def no_shapes(subject: Examined) -> Iterator[Sign]:
    """The report's coverage of shapes."""
    return _gap(subject, "shapes")


@CHECKS.add(
    "no-stacks",
    "No op has a stack",
    cause="with_stack was off. Which line of the script an op comes from is unknown.",
    fix="torch.profiler.profile(with_stack=True)",
    severity="info",
    needs=needs_profile,
)
def no_stacks(subject: Examined) -> Iterator[Sign]:
    """The report's coverage of stacks."""
    return _gap(subject, "stacks")


@CHECKS.add(
    "no-memory",
    "No allocation was recorded",
    cause="profile_memory was off; TensorFlow and JAX record allocations of devices only, and none on the CPU.",
    fix="torch.profiler.profile(profile_memory=True)",
    severity="info",
    needs=needs_profile,
)
def no_memory(subject: Examined) -> Iterator[Sign]:
    """The report's coverage of memory, where there is no allocation at all."""
    if subject.profile is None or not subject.profile.traces[0].memory.is_empty():
        return
    for sign in _gap(subject, "memory"):
        yield sign if _is_torch(subject) else Sign(sign.evidence, _ON_DEVICES)
