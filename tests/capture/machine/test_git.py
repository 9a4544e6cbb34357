"""The commit that runs, read from git's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.capture.machine.git import find_commit

ONE, TWO = "1" * 40, "2" * 40


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_branch_that_is_checked_out_above(tmp_path: Path) -> None:
    _write(tmp_path / ".git/HEAD", "ref: refs/heads/main\n")
    _write(tmp_path / ".git/refs/heads/main", f"{ONE}\n")
    (tmp_path / "a/b").mkdir(parents=True)
    assert find_commit(tmp_path / "a/b") == ONE


def test_detached_and_packed(tmp_path: Path) -> None:
    _write(tmp_path / ".git/HEAD", f"{TWO}\n")
    assert find_commit(tmp_path) == TWO
    _write(tmp_path / ".git/HEAD", "ref: refs/heads/main")
    _write(tmp_path / ".git/packed-refs", f"# pack-refs\n{ONE} refs/heads/main\n{TWO} refs/heads/other\n")
    assert find_commit(tmp_path) == ONE


def test_a_worktree(tmp_path: Path) -> None:
    _write(tmp_path / "main/.git/refs/heads/topic", ONE)
    _write(tmp_path / "main/.git/worktrees/wt/HEAD", "ref: refs/heads/topic")
    _write(tmp_path / "main/.git/worktrees/wt/commondir", "../..")
    _write(tmp_path / "wt/.git", f"gitdir: {tmp_path}/main/.git/worktrees/wt\n")
    assert find_commit(tmp_path / "wt") == ONE


@pytest.mark.parametrize(
    "head", ["", "nonsense", "ref: ../../etc/passwd", "ref: /etc/passwd", "ref: refs/heads/none"]
)
def test_odd_files_give_nothing(tmp_path: Path, head: str) -> None:
    _write(tmp_path / ".git/HEAD", head)
    assert find_commit(tmp_path) is None


def test_no_repository_and_a_broken_one(tmp_path: Path) -> None:
    _write(tmp_path / ".git/other", "")
    assert find_commit(tmp_path) is None
    assert find_commit(tmp_path / "gone") is None
