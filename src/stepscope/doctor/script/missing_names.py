"""Checks of names and methods that the framework does not have, so that the script fails before it records anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.profilers import LEGACY
from stepscope.doctor.script.source import Script
from stepscope.doctor.script.subject import TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script")
# Of TensorFlow 2.21; what is in graph mode is in tf.compat.v1.profiler.
_EXPERIMENTAL = {"Profile", "ProfilerOptions", "Trace", "client", "server", "start", "stop"}
_GRAPH_MODE = {
    "AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto", "ProfileOptionBuilder", "Profiler", "advise", "profile",
    "write_op_log",
}  # fmt: skip
_MODULES: dict[str, set[str]] = {
    "tensorflow.profiler": {"experimental"},
    "tensorflow.profiler.experimental": _EXPERIMENTAL,
    "tensorflow.profiler.experimental.client": {"monitor", "trace"},
    "tensorflow.profiler.experimental.server": {"start"},
    "tensorflow.python.profiler.profiler": _GRAPH_MODE,
    "tensorflow.contrib": set(),
    "tensorflow.contrib.tfprof": set(),
}
_NOT_HERE = ("schedule", "on_trace_ready", "activities")


@CHECKS.add("profiler-name-unknown")
def profiler_name_unknown(subject: TrainingScript) -> Iterator[Sign]:
    """Names below TensorFlow's profiler modules that are not there."""
    seen: set[str] = set()
    if subject.is_tensorflow_1:
        return
    for line, name in sorted(_named(subject.script)):
        module, _, last = name.rpartition(".")
        known = _MODULES.get(module)
        if known is not None and last not in known and name not in seen:
            seen.add(name)
            case = "graph" if module == "tensorflow.profiler" and last in _GRAPH_MODE else ""
            yield Sign(f"Line {line}: {name} does not exist.", case, name=last)


def _named(script: Script) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that is mentioned or imported."""
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, script.name_of(node)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@CHECKS.add("step-on-legacy-profiler")
def step_on_legacy_profiler(subject: TrainingScript) -> Iterator[Sign]:
    """What only torch.profiler has, asked of torch.autograd.profiler."""
    for held in subject.torch:
        if held.made.name != LEGACY:
            continue
        if "step" in held.asked:
            yield Sign(f"Line {held.line}: {min(held.names, default='prof')}.step() of {LEGACY}.")
        given = [name for name in _NOT_HERE if held.made.keyword(name) is not None]
        if given:
            yield Sign(f"Line {held.line}: {', '.join(given)} given to {LEGACY}.")
