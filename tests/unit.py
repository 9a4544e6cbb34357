"""The quick tests: `make unit` runs pytest with this plug-in (`-p tests.unit`).

Left out are modules that start other programs or servers, as their imports show, directly or through helpers of the tests, and
what is marked `thorough` or `corpus`. So a new test is sorted by itself. One that takes more processor time than is good for
a quick test is named at the end: it should be marked `thorough`, or become quicker.
"""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Programs, processes, sockets, and packages that take seconds to import.
SLOW_IMPORTS = {
    "subprocess",
    "multiprocessing",
    "socket",
    "playwright",
    "distributed",
    "dask",
    "tensorboard",
    "IPython",
}
SLOW_MARKS = ("thorough", "corpus")
SLOW_FOLDERS = (
    "tests/capture",
    "tests/browser",
    "tests/tensorboard",
    "tests/versions",
    "tests/corpus",
    "tests/cluster",
    "tests/distributions",
)
MOST_CPU_S = 2.0
_OURS = ("tests", "benchmarks")


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Modules that are left out are not even imported."""
    if (
        collection_path.suffix == ".py"
        and collection_path.name.startswith("test_")
        and is_slow(collection_path)
    ):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marked tests stay out."""
    slow = [item for item in items if any(item.get_closest_marker(mark) for mark in SLOW_MARKS)]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Processor time, not seconds: on a busy machine every test takes long."""
    before = time.process_time()
    yield
    item.user_properties.append(("cpu_s", time.process_time() - before))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what is too slow for a quick test."""
    for report in terminalreporter.getreports("passed"):
        spent = dict(report.user_properties).get("cpu_s", 0)
        if isinstance(spent, float) and spent > MOST_CPU_S:
            terminalreporter.write_line(
                f"{spent:.1f} s of processor time, mark it `thorough`: {report.nodeid}"
            )


def pytest_load_initial_conftests() -> None:
    """Property tests look at a few examples only; tests/conftest.py reads this when it is imported, so before that."""
    os.environ.setdefault("STEPSCOPE_EXAMPLES", "5")


def is_slow(path: Path) -> bool:
    """A module of a slow folder, or one that imports what starts processes."""
    name = path.resolve().relative_to(ROOT).as_posix()
    return name.startswith(tuple(f"{folder}/" for folder in SLOW_FOLDERS)) or bool(
        _reach(path) & SLOW_IMPORTS
    )


@cache
def _reach(path: Path) -> frozenset[str]:
    """The packages that a module imports, through modules of the tests as well."""
    found: set[str] = set()
    waiting, seen = [path], {path}
    while waiting:
        for name in _imports(waiting.pop()):
            package = name.partition(".")[0]
            found.add(package)
            inner = ROOT / f"{name.replace('.', '/')}.py"
            if package in _OURS and inner not in seen and inner.exists():
                seen.add(inner)
                waiting.append(inner)
    return frozenset(found)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    names = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)
