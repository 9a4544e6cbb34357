"""Outside a window: nanoseconds for step(), annotate and op, with these frameworks imported: outside.py [torch …]."""

from __future__ import annotations

import json
import sys
import tempfile
import timeit
from collections.abc import Callable
from importlib import import_module

import stepscope

for name in sys.argv[1:]:
    import_module(name)


def nothing() -> None:
    """What a call costs by itself."""


def annotated() -> None:
    with stepscope.annotate("x"):
        pass


def cost(function: Callable[[], object]) -> float:
    """The least of many short series: on a busy machine the others measure the neighbours."""
    calls = 500
    return min(timeit.repeat(function, number=calls, repeat=1000)) / calls * 1e9


with tempfile.TemporaryDirectory() as folder:
    profiler = stepscope.Profiler(folder, schedule=stepscope.schedule(skip=10**9))
    profiler.start()
    call = cost(nothing)
    figures = {"step": cost(profiler.step), "annotate": cost(annotated) - call}
    figures["op"] = cost(stepscope.op("x")(nothing)) - call
    profiler.stop()
print(json.dumps(figures))
