"""What became of the tests of all parts of `make test`: which passed only when tried again, and what was skipped, and why.

As a plug-in (`pytest -p tests.outcomes`) it appends the outcomes of a run to the file named by STEPSCOPE_OUTCOMES, a JSON line for each.
`python -m tests.outcomes FOLDER` prints the summary of such files, one for each part.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_MOST_IDS = 20
# Of a run in which a process of tests died: other than 1, so that `make test` does not try only those again that are known to have failed.
CRASHED = 3
Line = dict[str, Any]


class Writer:
    """Collects what one run of pytest reports."""

    def __init__(self, path: Path, again: bool) -> None:
        self._path, self._again = path, again
        self._passed = 0
        self._has_crashed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Skips, failures, and what passes when it is tried again; other passes are only counted."""
        if report.skipped:
            self._write(id=report.nodeid, outcome="skipped", reason=read_reason(report.longrepr))
        elif report.failed:
            self._write(id=report.nodeid, outcome="failed", again=self._again)
        elif report.when == "call":
            self._passed += 1
            if self._again:
                self._write(id=report.nodeid, outcome="passed", again=True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Modules that skip themselves, or cannot be imported."""
        if report.skipped:
            self._write(id=report.nodeid, outcome="skipped", reason=read_reason(report.longrepr))
        elif report.failed:
            self._write(id=report.nodeid, outcome="failed", again=self._again)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """A process that died took tests with it, of which nobody hears."""
        self._has_crashed = self._has_crashed or error is not None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """How many passed."""
        self._write(outcome="count", passed=self._passed)
        if self._has_crashed:
            session.exitstatus = CRASHED

    def _write(self, **line: Any) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that hears of all tests writes."""
    target = os.environ.get("STEPSCOPE_OUTCOMES")
    if target and "PYTEST_XDIST_WORKER" not in os.environ:
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        again = bool(config.getoption("lf", False))
        if not again:
            path.unlink(missing_ok=True)
        config.pluginmanager.register(Writer(path, again), "stepscope-outcomes")


def read_reason(longrepr: object) -> str:
    """Why a test was skipped: the last of file, line and reason."""
    text = str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)
    return text.removeprefix("Skipped: ").strip() or "no reason given"


@dataclass
class Summary:
    """Of one part, or of all."""

    passed: int = 0
    failed: set[str] = field(default_factory=set)
    unsteady: set[str] = field(default_factory=set)
    skipped: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, lines: Iterable[Line]) -> None:
        """The outcomes of a part, in the order of its runs."""
        failed: dict[str, bool] = {}
        passed_again = set()
        for line in lines:
            if line["outcome"] == "count":
                self.passed += line["passed"]
            elif line["outcome"] == "skipped":
                self.skipped[line["reason"]].add(line["id"])
            elif line["outcome"] == "failed":
                failed[line["id"]] = failed.get(line["id"], False) or line["again"]
            else:
                passed_again.add(line["id"])
        self.unsteady |= {test for test, again in failed.items() if not again and test in passed_again}
        self.failed |= failed.keys() - self.unsteady

    def lines(self) -> Iterator[str]:
        """For people: figures, then what they are made of."""
        skipped = sum(map(len, self.skipped.values()))
        yield (
            f"{self.passed:,} passed, {len(self.failed):,} failed, {len(self.unsteady):,} unsteady, {skipped:,} skipped"
        )
        yield from _list_tests("FAILED", self.failed)
        yield from _list_tests("UNSTEADY (failed, and passed when tried again alone)", self.unsteady)
        if self.skipped:
            yield "SKIPPED"
            for reason, tests in sorted(self.skipped.items(), key=lambda each: (-len(each[1]), each[0])):
                yield f"  {len(tests):5,}  {reason} ({_name_folders(tests)})"


def _list_tests(title: str, tests: set[str]) -> Iterator[str]:
    if tests:
        yield title
        yield from (f"  {test}" for test in sorted(tests)[:_MOST_IDS])
        if len(tests) > _MOST_IDS:
            yield f"  and {len(tests) - _MOST_IDS:,} more"


def _name_folders(tests: set[str]) -> str:
    """The two files or folders that most of them are in."""
    counted = Counter("/".join(test.partition("::")[0].split("/")[:2]) for test in tests)
    names = [name for name, _ in counted.most_common(2)]
    return ", ".join(names) + (" …" if len(counted) > len(names) else "")


def read_outcomes(folder: Path) -> Summary:
    """All parts together."""
    found = Summary()
    for path in sorted(folder.glob("*.jsonl")):
        found.add(json.loads(line) for line in path.read_text("utf-8").splitlines())
    return found


def main(folder: str) -> None:
    """Print the summary."""
    sys.stdout.write(
        "".join(f"{line}\n" for line in ("== outcomes of all tests", *read_outcomes(Path(folder)).lines()))
    )


if __name__ == "__main__":
    main(sys.argv[1])
