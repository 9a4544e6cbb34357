"""Allocations from a time without stacks: by the size of others, or of nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepscope.analysis.snapshot.culprit import name_culprits
from stepscope.analysis.snapshot.explain import Explained, explain
from stepscope.capture.backends import out_of_memory
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.snapshot import WITHOUT_STACKS
from tests.builders.snapshots import MIB, Job, making, script


class Unwatched(Job):
    """A job whose stacks were not recorded for a time."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[dict[str, Any]] = []

    def note(self, stage: str) -> None:
        """That begins or ends now."""
        self.time += 1
        self.notes.append({"name": WITHOUT_STACKS, "stage": stage, "time_us": self.time, "device": 0})

    def snapshot(self) -> dict[str, Any]:
        """With the annotations."""
        return {**super().snapshot(), "external_annotations": self.notes}


def explained(job: Job, folder: Path) -> Explained:
    """The one device of the job."""
    (found,) = explain(read(Source(job.write(folder / "snapshot.pickle"))))
    return found


def leak(annotated: bool) -> Job:
    """A list at line 9 that grows: without stacks at first, then with them; and 30 MiB of another size in between."""
    job = Unwatched()
    job.take(8 * MIB, making(script(5)))
    if annotated:
        job.note("START")
    for _ in range(30):
        job.take(20 * MIB, [])
    job.take(30 * MIB, [])
    if annotated:
        job.note("END")
    for _ in range(10):
        job.take(20 * MIB, script(9))
        job.free(job.take(MIB, script(8)), frames=script(8))
    job.fail(20 * MIB, script(9))
    return job


def kinds(found: Explained) -> dict[str, int]:
    """Bytes of each kind."""
    return {str(row["kind"]): int(row["bytes"]) for row in found.by_kind.iter_rows(named=True)}


def test_what_has_the_size_of_one_line_is_of_that_line(tmp_path: Path) -> None:
    found = explained(leak(annotated=True), tmp_path)
    first = name_culprits(found)[0]
    assert (first.cause, first.where[0].line, first.bytes) == ("kept", 9, 40 * 20 * MIB)


def test_the_rest_is_not_taken_for_the_backward_pass(tmp_path: Path) -> None:
    assert kinds(explained(leak(annotated=True), tmp_path)) == {
        "unknown": (40 * 20 + 30) * MIB,
        "parameter": 8 * MIB,
    }
    assert kinds(explained(leak(annotated=False), tmp_path))["temporary"] == (30 * 20 + 30) * MIB


def test_a_size_that_two_lines_make_is_of_nobody(tmp_path: Path) -> None:
    job = Unwatched()
    job.note("START")
    job.take(20 * MIB, [])
    job.note("END")
    for line in (8, 9):
        job.take(20 * MIB, script(line))
    job.fail(20 * MIB, script(9))
    by_line = explained(job, tmp_path).by_line
    assert sorted(by_line.select("site_line", "bytes").iter_rows(), key=str) == [
        (8, 20 * MIB),
        (9, 20 * MIB),
        (None, 20 * MIB),
    ]


def test_the_capture_writes_the_same_name() -> None:
    assert out_of_memory.WITHOUT_STACKS == WITHOUT_STACKS
