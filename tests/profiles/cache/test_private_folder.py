"""The cache folder is the user's and closed to others; one that is not is left alone, and that is said."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.formats.source import Source
from stepscope.profiles.cache.cache import Cache, identify
from stepscope.profiles.cache.place import Identity
from stepscope.profiles.cache.private_folder import NotPrivate, check_private, make_private
from stepscope.profiles.load import load
from tests.builders import traces
from tests.builders.files import put
from tests.profiles.cache.test_stored import never

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows keeps users apart by itself")
SOMEBODY = 54321


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def identity(folder: Path) -> Identity:
    file = folder / "trace.json"
    file.write_bytes(b"some profile")
    found = identify(Source(str(file)))
    assert found is not None
    return found


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_it_is_made_for_the_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "cache"
    cache, key = Cache(folder), identity(tmp_path)
    assert cache.store(key, traces.trace()) is None
    entry = folder / key.key
    assert [mode(path) for path in (folder.parent, folder, entry)] == [0o700] * 3
    files = list(entry.iterdir())
    assert len(files) > 3
    assert {mode(path) for path in files} == {0o600}


@pytest.mark.parametrize("bits", [0o755, 0o750, 0o770, 0o777, 0o1777, 0o701])
def test_one_that_is_open_is_not_used(tmp_path: Path, bits: int) -> None:
    """Somebody may share it on purpose: it is neither filled nor closed."""
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "notes.txt").write_text("kept")
    folder.chmod(bits)
    cache, key = Cache(folder), identity(tmp_path)
    problem = cache.store(key, traces.trace())
    assert problem is not None
    assert problem.code == "cache-unwritable"
    assert f"the folder is open to other users (mode {bits:03o})" in problem.detail
    assert problem.fix.startswith(f"Run `chmod 700 {folder}`, or set STEPSCOPE_CACHE")
    assert cache.open(key, "x", never) is None
    assert not cache.holds(key)
    cache.prune()
    assert mode(folder) == bits
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_an_empty_one_that_is_open_is_not_used_either(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(NotPrivate):
        check_private(folder)
    assert mode(folder) == 0o777


def test_one_that_only_we_have_filled_is_closed_again(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache, key = Cache(folder), identity(tmp_path)
    assert cache.store(key, traces.trace()) is None
    folder.chmod(0o755)
    assert cache.open(key, "x", never) is not None
    assert mode(folder) == 0o700


def test_what_was_planted_while_it_was_open_is_not_believed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    folder = tmp_path / "cache"
    cache, key = Cache(folder), identity(tmp_path)
    assert cache.store(key, traces.trace()) is None
    folder.chmod(0o777)
    os.chown(folder / key.key, SOMEBODY, SOMEBODY)
    assert cache.open(key, "x", never) is None


def test_a_file_system_without_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where closing it changes nothing, it is not used."""
    folder = tmp_path / "cache"
    key = identity(tmp_path)
    assert Cache(folder).store(key, traces.trace()) is None
    folder.chmod(0o777)
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    with pytest.raises(NotPrivate, match="open to other users"):
        check_private(folder)


def test_one_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    key = identity(tmp_path)
    assert Cache(folder).store(key, traces.trace()) is None
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    assert Cache(folder).open(key, "x", never) is None
    problem = Cache(folder).store(key, traces.trace())
    assert problem is not None
    assert "the folder belongs to another user" in problem.detail
    assert "STEPSCOPE_CACHE" in problem.fix


def test_a_link_of_ones_own_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    make_private(tmp_path / "cache")
    (tmp_path / "disk").chmod(0o755)
    with pytest.raises(NotPrivate, match="open to other users"):
        make_private(tmp_path / "cache")


def test_a_link_of_another_user_is_not(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a link away")
    (tmp_path / "disk").mkdir(0o700)
    link = tmp_path / "cache"
    link.symlink_to(tmp_path / "disk")
    os.chown(link, SOMEBODY, SOMEBODY, follow_symlinks=False)
    with pytest.raises(NotPrivate, match="a link that another user made"):
        check_private(link)


def test_a_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "cache").symlink_to(tmp_path / "absent")
    assert Cache(tmp_path / "cache").open(identity(tmp_path), "x", never) is None
    problem = Cache(tmp_path / "cache").store(identity(tmp_path), traces.trace())
    assert problem is not None
    assert not (tmp_path / "absent").exists()


def test_the_profile_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("STEPSCOPE_CACHE", str(folder))
    put(tmp_path / "logs", "rank0.pt.trace.json")
    for _ in range(2):
        found = load(tmp_path / "logs")
        assert found.events.height > 0
        (problem,) = [row for row in found.problems.to_dicts() if row["code"] == "cache-unwritable"]
        assert "chmod 700" in problem["fix"]
    assert list(folder.iterdir()) == []


def test_windows_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "geteuid")
    tmp_path.chmod(0o777)
    check_private(tmp_path)
