"""The page docs/faq.md: questions of users, answered by the catalogue: python -m stepscope.problems.faq docs/faq.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from stepscope.markdown import write_page
from stepscope.problems.catalogue import CATALOGUE
from stepscope.problems.entry import EXAMPLES

_INTRODUCTION = """# FAQ

Questions that users of profilers ask, with the causes that `stepscope doctor` looks for. It examines a machine, a script or a profile and
names the cause that applies, with its evidence:

```
stepscope doctor               # this machine
stepscope doctor train.py      # a training script, which is parsed and never run
stepscope doctor logs/run1     # a profile, or a folder that should hold one
```

This page is generated from the catalogue of problems: `python -m stepscope.problems.faq docs/faq.md`. All of them are in
[Problems](problems.md) and [Troubleshooting](troubleshooting.md).
"""
# The cases of an entry that differ by what people use; others differ by what happened to them, of which the first is enough here.
_TOOLS = ("pytorch", "tensorflow", "jax", "keras", "nsys", "rocprof", "stepscope")
# As people put them, and the problems that can be behind each, the most frequent first.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "The Profile tab of TensorBoard is missing": (
        "no-profile-plugin",
        "plugin-broken",
        "tensorboard-other-python",
        "protobuf-version",
        "pkg-resources-missing",
        "wrong-platform-wheel",
    ),
    "TensorBoard shows no data for the active dashboards": (
        "wrong-logdir",
        "nothing-found",
        "profiler-never-started",
        "window-never-reached",
        "keras-profile-batch",
    ),
    "Some ops have no runtime or memory": (
        "no-memory",
        "option-without-data",
        "no-shapes",
        "no-stacks",
        "graphs-hide-ops",
    ),
    "There are no kernels, only the CPU": (
        "no-device-events",
        "no-device-activity",
        "cupti-missing",
        "cupti-versions",
        "another-profiler",
        "devices-hidden",
    ),
    "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES": ("profiling-restricted", "cupti-failed"),
    "No step marker observed": ("no-steps", "no-step-marker", "schedule-without-step", "trace-without-root"),
    "The first step takes a hundred times longer": ("only-warm-up", "no-warmup", "keras-profile-batch"),
    "The trace is too large to open": ("huge-trace", "long-window", "mostly-python"),
    "The profile is empty or was never written": (
        "never-stopped",
        "stop-skipped-on-error",
        "capture-killed",
        "disk-full",
        "folder-unwritable",
    ),
    "Profiles of several ranks overwrite each other": (
        "one-logdir-for-all-ranks",
        "missing-ranks",
        "duplicate-rank",
        "split-runs",
    ),
    "Events are missing from the profile": ("dropped-events", "buffer-overflow", "event-cap", "truncated"),
    "stepscope is slow": ("slow-path", "cache-unwritable"),
}


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *(_answered(question) for question in QUESTIONS)])


def _answered(question: str) -> str:
    return "\n".join([f"## {question}\n", *_causes(QUESTIONS[question])])


def _causes(codes: tuple[str, ...]) -> Iterator[str]:
    for code in codes:
        entry = CATALOGUE[code]
        usual = entry.examples()[0]
        others = (entry.words(case, {**EXAMPLES, **entry.example}) for case in entry.cases if case in _TOOLS)
        fixes = dict.fromkeys([usual.fix, *(each.fix for each in others)])
        shown = "\n\n".join(f"    → {_escaped(fix)}" for fix in fixes)
        yield f"- **{_escaped(usual.title)}** (`{code}`). {_escaped(usual.cause)}\n\n{shown}\n"


def _escaped(text: str) -> str:
    """Angle brackets are not markup here."""
    return text.replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    write_page(page(), sys.argv[1:])
