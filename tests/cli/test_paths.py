"""Paths that people give: wrong ones end in one error and exit code 1, odd ones open like any other."""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.errors import NothingFound
from stepscope.formats.registry import describe_supported
from stepscope.profiles.load import load
from tests.builders.files import kineto, put
from tests.cli.inside import stepscope, succeeds
from tests.cli.run import PROFILE
from tests.cli.run import succeeds as succeeds_in_a_process
from tests.sample import pairs

SUPPORTED = describe_supported()
pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths of Unix")


def told(path: str | Path, *more: str, cwd: Path | None = None) -> list[str]:
    """The error for this path, line by line."""
    ended = stepscope("info", path, *more, cwd=cwd)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
    assert "bug" not in ended.stderr
    return ended.stderr.removeprefix("error: ").splitlines()


def circle(folder: Path) -> Path:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    return folder / "a"


def dangling(folder: Path) -> Path:
    (folder / "link").symlink_to(folder / "gone")
    return folder / "link"


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def listener(folder: Path) -> Path:
    os.mknod(folder / "s", stat.S_IFSOCK | 0o600)  # bind() takes no long path
    return folder / "s"


def cut(folder: Path) -> Path:
    (folder / "cut.pt.trace.json.gz").write_bytes(PROFILE.read_bytes()[:40])
    return folder / "cut.pt.trace.json.gz"


def empty(folder: Path) -> Path:
    (folder / "empty.pt.trace.json").touch()
    return folder / "empty.pt.trace.json"


def excel(folder: Path) -> Path:
    (folder / "x.json.gz").write_bytes(gzip.compress(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest"))
    return folder / "x.json.gz"


WRONG: list[tuple[Callable[[Path], object], list[str]]] = [
    (lambda at: at / "nowhere", ["No such file or folder: {path}"]),
    (lambda at: at / "no" / "where", ["No such file or folder: {path}", "The folder {folder} does not exist either."]),
    (lambda _: PROFILE / "x", ["No such file or folder: {path}", f"{PROFILE} is a file."]),
    (lambda at: f"{at}/*.nothing", ["No file matches {path}", "Quote the pattern; ** matches any folders."]),
    (lambda at: at, ["No profile found in {path} (0 files in 1 folder examined).", SUPPORTED]),
    (circle, ["Cannot open {path}: Too many levels of symbolic links"]),
    (dangling, ["Broken symbolic link: {path}"]),
    (pipe, ["Not a regular file but a device, pipe or socket: {path}"]),
    (listener, ["Not a regular file but a device, pipe or socket: {path}"]),
    (lambda _: "/dev/zero", ["Not a regular file but a device, pipe or socket: {path}"]),
    (cut, ["{path} is not a profile: its gzip stream is cut or damaged before the first byte.", SUPPORTED]),
    (empty, ["{path} is not a profile: it is empty: the profiler wrote nothing, or the job ended before it could.", SUPPORTED]),
    (excel, ["{path} is not a profile: it is an old Office document, such as an Excel sheet.", SUPPORTED]),
    (lambda _: "memory://nowhere", ["No such file or folder: memory:///nowhere"]),
    (lambda _: "nonsense://x", ["Cannot open nonsense://x: Protocol not known: nonsense"]),
    (lambda at: f"file://{at}/nowhere", ["No such file or folder: {folder}/nowhere"]),
    (lambda _: "", ["The path is empty.", "Give a profile, a folder with profiles, a glob pattern or a URL."]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), WRONG, ids=range(len(WRONG)))
def test_wrong_paths(make: Callable[[Path], object], expected: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "alone" / "here"  # so that nothing is found nearby
    folder.mkdir(parents=True)
    path = str(make(folder))
    parent = path.removeprefix("file://").rpartition("/")[0]
    assert told(path) == [line.replace("{path}", path).replace("{folder}", parent) for line in expected]


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "mine.pt.trace.json.gz"
    path.write_bytes(PROFILE.read_bytes())
    path.chmod(0)
    assert told(path) == [f"No permission to read {path}", f"Try: chmod u+r '{path}', or run as its owner."]
    folder = tmp_path / "folder"
    folder.mkdir(0o000)
    assert told(folder) == [
        f"No permission to read {folder}",
        f"Try: chmod u+rx '{folder}', or run as its owner.",
    ]


NAMES = [
    b"with space.json.gz", b"with'quote\".json.gz", b"new\nline.json.gz", b"$(touch x).json.gz", b"-rf.json.gz", b"[1].json.gz",
    b"100%25.json.gz", b"caf\xc3\xa9.json.gz", b"caf\xe9.json.gz", b"\xff\xfe.json.gz", b"\x1b[31mred.json.gz", b"noending", b"x" * 250,
    b"C:.json", b"a::b.json",
]  # fmt: skip


@pytest.mark.parametrize(("name", "by"), pairs(NAMES, ["file", "folder", "slash"]), ids=repr)
def test_odd_names_open_like_any_other(name: bytes, by: str, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(PROFILE.read_bytes())
    given = {"file": str(path), "folder": str(tmp_path), "slash": f"{tmp_path}/"}[by]
    profile = load(given)
    assert len(profile.events) == 53
    assert profile.table("traces")["path"][0].startswith(str(tmp_path))
    repr(profile).encode()
    profile._repr_html_().encode()


@pytest.mark.parametrize(
    ("verb", "name"),
    pairs(
        [("info",), ("report",), ("query", "SELECT path FROM traces"), ("info", "--format", "json"), ("report", "--format", "json")],
        [b"caf\xe9\x1b[31m.pt.trace.json.gz", b"a\nb [x] 'y'.pt.trace.json.gz"],
    ),
)  # fmt: skip
def test_odd_names_everywhere(name: bytes, verb: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(PROFILE.read_bytes())
    for _ in ("read", "from the cache"):
        shown = succeeds(verb[0], path, *verb[1:])
        assert "\x1b" not in shown


@pytest.mark.parametrize("to", ["chrome", "parquet"])
def test_odd_names_are_exported(to: str, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.json.gz")
    path.write_bytes(PROFILE.read_bytes())
    succeeds_in_a_process("export", path, "--to", to, "-o", tmp_path / "out")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("query", "{files}", "SELECT COUNT(DISTINCT rank) AS ranks FROM events", "--format", "csv"), "ranks\n2\n"),
        (("export", "{files}", "--to", "chrome", "-o", "-"), '{"rank":1,'),
        (("check", "{files}", "--budget", "{at}/budgets.toml"), "PASSED: 1 of 1"),
        (("info", "{files}", "--format", "json"), '"rank": 1'),
    ],
)  # fmt: skip
def test_files_of_several_ranks(command: tuple[str, ...], shown: str, tmp_path: Path) -> None:
    """Side by side in one folder, and one after the other on the command line, as a shell writes a pattern."""
    files = [str(tmp_path / name) for name in ("left.json", "right.json")]
    for rank, file in enumerate(files):
        put(tmp_path, file, content=kineto(rank=rank, world_size=2))
    (tmp_path / "budgets.toml").write_text('step_time = "1 min"\n')
    words = [
        word
        for each in command
        for word in (files if each == "{files}" else [each.replace("{at}", str(tmp_path))])
    ]
    assert shown in stepscope(*words).stdout


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "\udfff.json"])
def test_names_that_no_file_can_have(path: str) -> None:
    with pytest.raises(NothingFound, match="Invalid file name: "):
        load(path)
