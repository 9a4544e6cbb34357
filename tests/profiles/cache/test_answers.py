"""Answers that are kept beside the tables: found as they were, dropped when damaged, outdated or too many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.profiles.cache import answers as kept
from stepscope.profiles.cache.answers import Answers
from stepscope.profiles.cache.place import MANIFEST, Identity


def of(folder: Path, state: str = "1", limit: int = 1 << 20) -> Answers:
    """The answers about a profile in this state."""
    return Answers(Identity("profile", state), folder / "cache", limit)


def files(folder: Path) -> list[Path]:
    """Those of all answers."""
    return sorted((folder / "cache").glob("*/*.answer"))


def test_found_as_it_was(tmp_path: Path) -> None:
    of(tmp_path).keep("report", b"bytes\n\0")
    assert of(tmp_path).get("report") == b"bytes\n\0"
    assert of(tmp_path).get("another") is None


def test_another_state_is_another_profile_and_replaces_the_old_one(tmp_path: Path) -> None:
    of(tmp_path).keep("report", b"old")
    assert of(tmp_path, "2").get("report") is None
    of(tmp_path, "2").keep("report", b"new")
    assert of(tmp_path, "2").get("report") == b"new"
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("damage", [b"", b"0000", b"00000000bytes", b"\xff" * 100])
def test_a_damaged_answer_is_none_and_is_replaced(tmp_path: Path, damage: bytes) -> None:
    of(tmp_path).keep("report", b"bytes")
    files(tmp_path)[0].write_bytes(damage)
    assert of(tmp_path).get("report") is None
    of(tmp_path).keep("report", b"bytes")
    assert of(tmp_path).get("report") == b"bytes"


def test_the_oldest_go_where_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_ANSWERS", 2)
    for number, name in enumerate("abc"):
        of(tmp_path).keep(name, name.encode())
        newest = max(files(tmp_path), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (number, number))
    assert [of(tmp_path).get(name) for name in "abc"] == [None, b"b", b"c"]


def test_the_limit_of_the_cache_holds_for_answers(tmp_path: Path) -> None:
    for number in range(4):
        Answers(Identity(f"profile {number}", "1"), tmp_path / "cache", 100).keep("report", b"x" * 60)
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 100 + 60
    of(tmp_path, limit=10).keep("report", b"x" * 60)
    assert of(tmp_path, limit=10).get("report") is None
    of(tmp_path, limit=0).keep("other", b"x")
    assert of(tmp_path, limit=0).get("other") is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="other systems keep users apart by themselves")
def test_what_others_may_have_written_is_not_read(tmp_path: Path) -> None:
    of(tmp_path).keep("report", b"bytes")
    (entry,) = (tmp_path / "cache").iterdir()
    assert entry.stat().st_mode & 0o077 == 0
    assert (entry / MANIFEST).exists()
    entry.chmod(0o777)
    assert of(tmp_path).get("report") is None


def test_a_folder_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    of(tmp_path).keep("report", b"bytes")
    assert of(tmp_path).get("report") is None
