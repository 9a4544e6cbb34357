"""Damaged profiles: the fuzzer makes the same case again, reaches what it damages, and sees every kind of failure."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.fuzz.__main__ import balanced, defaults
from benchmarks.fuzz.batch import case, look_at
from benchmarks.fuzz.messages import Damage, Field, rewritten, split
from stepscope.errors import StepscopeError
from stepscope.formats import read
from stepscope.formats.source import Source
from tests.cli.run import FIXTURES, environment
from tests.patience import PATIENCE_S

FILES = [
    FIXTURES / "kineto" / "streams.pt.trace.json.gz",
    FIXTURES / "kineto" / "cuda_graph.pt.trace.json.gz",
    FIXTURES / "tf_events" / "events.out.tfevents.1794707819.vm",
    *(FIXTURES / "jax").rglob("vm.*"),
]


@pytest.mark.parametrize("seed", range(40))
def test_some_cases_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    (tmp_path / "case").write_bytes(case(seed, FILES))
    try:
        look_at(read(Source(str(tmp_path / "case"))))
    except StepscopeError as error:
        assert error.what


def test_a_case_can_be_made_again() -> None:
    assert case(7, FILES) == case(7, FILES) != case(8, FILES)


def test_all_formats_come_up_alike() -> None:
    names = [path.name for path in balanced(defaults())]
    parts = ["tfevents" in name for name in names], [".xplane.pb" in name for name in names]
    assert sum(parts[0]) == sum(parts[1]) == len(names) // 4


MESSAGE = b"".join(
    (
        Field(1, 0, b"\x05").written(),
        Field(2, 2, Field(3, 1, bytes(8)).written()).written(),
        Field(4, 2, b"text").written(),
    )
)


def test_messages_are_split_into_what_they_are() -> None:
    assert [field[:2] for field in split(MESSAGE)] == [(1, 0), (2, 2), (4, 2)]
    assert b"".join(field.written() for field in split(MESSAGE)) == MESSAGE
    assert split(b"\x0a\x05abc") == split(b"\xff" * 12) == split(b"\x0b") == split(b"\x02\x00") == []


@pytest.mark.parametrize("damage", list(Damage))
def test_each_damage_is_done(damage: Damage) -> None:
    made = {rewritten(random.Random(seed), MESSAGE, damage) for seed in range(30)}
    assert len(made - {MESSAGE}) >= 2


def batch(folder: Path, *more: str, files: Sequence[Path] = FILES[:1]) -> subprocess.CompletedProcess[str]:
    """Two cases in a process of their own."""
    options = {
        "--first": "5",
        "--count": "2",
        "--case-seconds": str(PATIENCE_S),
        "--memory": "4000",
        "--folder": str(folder),
    }
    options |= dict(zip(more[::2], more[1::2], strict=True))
    command = [
        sys.executable,
        "-m",
        "benchmarks.fuzz.batch",
        *(word for pair in options.items() for word in pair),
    ]
    root = Path(__file__).parents[2]
    return subprocess.run(
        [*command, *map(str, files)], capture_output=True, text=True, env=environment(), cwd=root, check=False
    )


def test_nothing_is_kept_of_what_went_well(tmp_path: Path) -> None:
    ended = batch(tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "5\n6\n")
    assert list(tmp_path.iterdir()) == []


def test_too_much_memory_is_seen(tmp_path: Path) -> None:
    ended = batch(tmp_path, "--memory", "1")
    assert ended.returncode == 1
    assert "MiB of memory for" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == [f"case-{ended.stdout.split()[-1]}"]


def test_a_hang_is_seen(tmp_path: Path) -> None:
    ended = batch(tmp_path, "--case-seconds", "0.0001")
    assert ended.returncode != 0  # usually 1; who looks at the stacks of a running program may also fall over
    assert "Timeout" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["case-5"]


def test_a_file_that_cannot_be_damaged_is_a_failure(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json.gz"
    broken.write_bytes(gzip.compress(b"[]")[:-4])
    assert "EOFError" in batch(tmp_path, files=[broken]).stderr


def test_failures_are_told_with_their_files(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.fuzz",
        "--seconds",
        "0.1",
        "--seed",
        "5",
        "--memory",
        "1",
        "--out",
        str(tmp_path),
    ]
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [*command, str(FILES[0])], capture_output=True, text=True, env=environment(), cwd=root, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"FAILED {tmp_path}/case-")
    assert ended.stdout.endswith(" cases from seed 5 on, of 1 files: 1 failures\n")
