"""A script with what several checks ask of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from stepscope.doctor.script.profilers import Held, held_profilers
from stepscope.doctor.script.source import Call, Script, last_part

LOOPS = (ast.For, ast.While, ast.AsyncFor)
_RANK = re.compile(
    r"(?i)rank|is_main|is_master|primary|chief|process_index|is_global_zero|local_process_zero|world_process_zero"
)
_TRAINS = re.compile(r"(?i)^(backward|apply_gradients|minimize|train.*|fit.*|update.*|.*step.*)$")


@dataclass(frozen=True)
class Pair:
    """A profiler that is started and stopped by functions."""

    start: str
    stops: tuple[str, ...]
    shown: str
    case: str  # in the catalogue of problems


PAIRS = (
    Pair(
        "tensorflow.profiler.experimental.start",
        ("tensorflow.profiler.experimental.stop",),
        "tf.profiler.experimental.start",
        "tensorflow",
    ),
    Pair(
        "jax.profiler.start_trace",
        ("jax.profiler.stop_trace",),
        "jax.profiler.start_trace",
        "jax",
    ),
    Pair(
        "tensorflow.summary.trace_on",
        ("tensorflow.summary.trace_export", "tensorflow.summary.trace_off"),
        "tf.summary.trace_on",
        "summary",
    ),
    Pair(
        "torch.cuda.profiler.start",
        ("torch.cuda.profiler.stop",),
        "torch.cuda.profiler.start",
        "cuda",
    ),
)
WITHS = (
    "tensorflow.profiler.experimental.Profile",
    "jax.profiler.trace",
)
_LEVELS = ("FULL_TRACE", "HARDWARE_TRACE", "SOFTWARE_TRACE")
_OF_SESSIONS = tuple(
    f"tensorflow.{name}"
    for name in ("Session", "InteractiveSession", "placeholder", "ConfigProto", "global_variables_initializer", "RunMetadata",
                 "train.MonitoredTrainingSession", "app.run", "disable_v2_behavior", "disable_eager_execution")
)  # fmt: skip


@dataclass
class TrainingScript:
    """What the checks of scripts look at."""

    script: Script

    @cached_property
    def held(self) -> list[Held]:
        """The profilers that are objects."""
        return held_profilers(self.script)

    @property
    def torch(self) -> list[Held]:
        """Those of PyTorch."""
        return [held for held in self.held if held.is_torch]

    def records(self) -> bool:
        """Whether anything here records at all."""
        return bool(
            self.held
            or self.script.calls_of(*(pair.start for pair in PAIRS), *WITHS)
            or self._traces_sessions()
        )

    def _traces_sessions(self) -> bool:
        """RunOptions(trace_level=RunOptions.FULL_TRACE): a session of TensorFlow 1 records the run, for RunMetadata or a Timeline."""
        levels = (call.keyword("trace_level") for call in self.script.calls)
        return any(last_part(node) in _LEVELS for node in ast.walk(self.script.tree)) or any(
            self.script.number(level) for level in levels
        )

    @cached_property
    def is_tensorflow_1(self) -> bool:
        """Whether it is written for sessions, by TensorFlow 1 or its names in TensorFlow 2."""
        nodes = (node for node in ast.walk(self.script.tree) if isinstance(node, ast.Attribute))
        return any(self.script.name_of(node) in _OF_SESSIONS for node in nodes) or any(
            name.startswith("tensorflow.compat.v1") for name in self.script.aliases.values()
        )

    def regions(self, start: str, stops: tuple[str, ...], block: str) -> Iterator[tuple[Call, list[ast.AST]]]:
        """What is between start and stop of the same function, or inside the `with` block."""
        for call in self.script.calls_of(block):
            holder = self.script.parent(call.node)
            parent = self.script.parent(holder) if isinstance(holder, ast.withitem) else None
            if isinstance(parent, ast.With | ast.AsyncWith):
                yield call, [node for part in parent.body for node in ast.walk(part)]
        for call in self.script.calls_of(start):
            home = next(self.script.functions_around(call.node), self.script.tree)
            ends = [end.line for end in self.script.calls_of(*stops) if end.line > call.line]
            last = max(ends, default=1 << 30)
            inside = [node for node in ast.walk(home) if call.line < getattr(node, "lineno", 0) <= last]
            yield call, inside

    def training_loops(self, nodes: list[ast.AST]) -> list[ast.AST]:
        """The loops among these in which something is trained, by the names of what they call."""
        return [
            node
            for node in nodes
            if isinstance(node, LOOPS) and any(_trains(each) for each in ast.walk(node))
        ]

    def is_guarded(self, node: ast.AST) -> bool:
        """Whether only one of the ranks gets here."""
        tests = [each.test for each in self.script.around(node) if isinstance(each, ast.If | ast.IfExp)]
        return any(_RANK.search(ast.unparse(test)) for test in tests) or self._returns_early(node)

    def _returns_early(self, node: ast.AST) -> bool:
        """if rank != 0: return"""
        return any(
            isinstance(statement, ast.If)
            and _RANK.search(ast.unparse(statement.test))
            and isinstance(statement.body[-1], ast.Return)
            for function in self.script.functions_around(node)
            for statement in function.body
        )


def _trains(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(_TRAINS.match(last_part(node.func)))
