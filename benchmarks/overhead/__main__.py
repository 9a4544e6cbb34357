"""Runs each measurement in a process of its own and says which promises are kept: python -m benchmarks.overhead."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import ROOT
from benchmarks.promises import Promise

IN_WINDOW = 1.05
OUTSIDE_NS = 1000
IMPORT_MS = 30
_IMPORT = "import time; a = time.perf_counter(); import stepscope; print(time.perf_counter() - a)"
_WINDOWS = (
    ("torch", "torch_steps", ()),
    ("torch, with stacks", "torch_steps", ("--stacks",)),
    ("jax", "jax_steps", ()),
    ("tensorflow", "tensorflow_steps", ()),
)


def main() -> int:
    """All of it, each line as soon as it is known; 1 where a promise is broken."""
    broken = 0
    for promise in _measured():
        print(promise.line(), flush=True)
        broken += not promise.kept
    return 1 if broken else 0


def _measured() -> Iterator[Promise]:
    yield _imported()
    for frameworks in ((), ("torch",), ("jax",), ("tensorflow",)):
        yield from _outside(*frameworks)
    for name, script, options in _WINDOWS:
        yield from _window(name, script, *options)


def _imported() -> Promise:
    seconds = [float(_run("-c", _IMPORT)) for _ in range(7)]
    return Promise(
        "import stepscope", statistics.median(seconds) * 1000, IMPORT_MS, at_least=False, unit=" ms"
    )


def _outside(*frameworks: str) -> list[Promise]:
    if _lacking(*frameworks):
        return []
    found: dict[str, float] = json.loads(_run("-m", "benchmarks.overhead.outside", *frameworks))
    beside = ", ".join(frameworks) or "no framework"
    return [
        Promise(f"{name} outside a window, {beside}", value, OUTSIDE_NS, at_least=False, unit=" ns")
        for name, value in found.items()
    ]


def _window(name: str, script: str, *options: str) -> list[Promise]:
    if _lacking(name.split(",")[0]):
        return []
    found: dict[str, Any] = json.loads(_run("-m", f"benchmarks.overhead.{script}", *options))
    print(
        f"{name}: a step takes {found['bare_ns'] / 1e6:.3f} ms, {found['own_ns'] / 1e6:.3f} under the framework's profiler, "
        f"{found['ours_ns'] / 1e6:.3f} under ours"
    )
    return [
        Promise(
            f"{name}: a recorded step against the framework's own", found["ratio"], IN_WINDOW, at_least=False
        )
    ]


def _lacking(*frameworks: str) -> bool:
    absent = [name for name in frameworks if importlib.util.find_spec(name) is None]
    if absent:
        print(f"{', '.join(absent)}: not installed, not measured")
    return bool(absent)


def _run(*command: str) -> str:
    """The last line that the process prints."""
    env = os.environ | {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    ended = subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    return ended.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
