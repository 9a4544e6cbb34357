"""`stepscope export`: files for other tools, and back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pyarrow.parquet
import pytest

from stepscope.profiles import export as writer
from stepscope.profiles.load import load
from stepscope.trace.schema import TABLES
from tests.builders.files import kineto, put
from tests.cli.inside import stepscope, succeeds
from tests.cli.run import PROFILE
from tests.cli.run import succeeds as succeeds_in_a_process
from tests.formats.own_export.test_write import check_same


def two_ranks(folder: Path) -> Path:
    """A folder with the files of two ranks."""
    put(folder, "rank0.pt.trace.json", content=kineto(rank=0, world_size=2))
    put(folder, "rank1.pt.trace.json", content=kineto(events=5, rank=1, world_size=2))
    return folder


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_chrome(name: str, tmp_path: Path) -> None:
    ended = stepscope("export", PROFILE, "--to", "chrome", "-o", tmp_path / name)
    assert ended.returncode == 0
    assert ended.stdout == ""
    assert f"Wrote {tmp_path / name}" in ended.stderr
    data = (tmp_path / name).read_bytes()
    document = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
    assert sum(event["ph"] in "Xi" for event in document["traceEvents"]) == 53
    check_same(load(PROFILE).traces[0], load(tmp_path / name).traces[0])


def test_chrome_to_stdout() -> None:
    document = json.loads(succeeds_in_a_process("export", PROFILE, "--to", "chrome", "-o", "-"))
    assert document["stepscope"]["form"] == 1


def test_a_name_by_default(tmp_path: Path) -> None:
    ended = stepscope("export", PROFILE, "--to", "chrome", cwd=tmp_path)
    assert ended.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["streams.chrome.json.gz"]


def test_quiet(tmp_path: Path) -> None:
    assert stepscope("export", PROFILE, "--to", "chrome", "-q", cwd=tmp_path).stderr == ""


def test_several_ranks_are_a_folder_that_opens_again(tmp_path: Path) -> None:
    succeeds("export", two_ranks(tmp_path / "in"), "--to", "chrome", "-o", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "rank0.trace.json.gz",
        "rank1.trace.json.gz",
    ]
    before, after = load(tmp_path / "in"), load(tmp_path / "out")
    assert after.ranks == [0, 1]
    for mine, theirs in zip(before.traces, after.traces, strict=True):
        check_same(mine, theirs)


def test_one_rank_of_several(tmp_path: Path) -> None:
    folder = two_ranks(tmp_path / "in")
    succeeds("export", folder, "--to", "chrome", "--rank", "1", "-o", tmp_path / "one.json")
    assert len(load(tmp_path / "one.json").events) == 6


def test_parquet(tmp_path: Path) -> None:
    succeeds("export", PROFILE, "--to", "parquet", "-o", tmp_path / "tables")
    profile = load(PROFILE)
    filled = {name for name in TABLES if len(profile.table(name))}
    assert {path.stem for path in (tmp_path / "tables").iterdir()} == filled
    for name in filled:
        mine = pl.read_parquet(tmp_path / "tables" / f"{name}.parquet")
        assert (
            mine.rows()
            == profile.table(name).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).rows()
        )
        assert pyarrow.parquet.read_table(tmp_path / "tables" / f"{name}.parquet").num_rows == len(mine)


def test_parquet_of_several_ranks_has_their_rank(tmp_path: Path) -> None:
    succeeds("export", two_ranks(tmp_path / "in"), "--to", "parquet", "-o", tmp_path / "out")
    assert pl.read_parquet(tmp_path / "out" / "events.parquet")["rank"].value_counts().sort(
        "rank"
    ).rows() == [(0, 4), (1, 6)]


def test_parquet_is_no_stream() -> None:
    assert "cannot go to stdout" in stepscope("export", PROFILE, "--to", "parquet", "-o", "-").stderr


@pytest.mark.parametrize("to", ["chrome", "parquet"])
def test_nothing_is_overwritten_unasked(to: str, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    if to == "parquet":
        target.mkdir()
        (target / "events.parquet").write_text("mine")
    else:
        target.write_text("mine")
    ended = stepscope("export", PROFILE, "--to", to, "-o", target)
    assert ended.returncode == 1
    assert "already exists" in ended.stderr
    succeeds("export", PROFILE, "--to", to, "-o", target, "--force")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == b"mine"]


def test_a_file_where_a_folder_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    assert (
        "is a file"
        in stepscope("export", PROFILE, "--to", "parquet", "-o", tmp_path / "out", "--force").stderr
    )


def test_a_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(_: object) -> object:
        yield "{"
        raise RuntimeError("in the middle")

    monkeypatch.setattr(writer, "chrome_text", break_off)
    with pytest.raises(RuntimeError):
        writer.chrome(load(PROFILE), tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b/resnet.pt.trace.json.gz", "resnet.chrome.json.gz"),
        ("plugins/profile/2026_11_14", "2026_11_14.chrome.json.gz"),
        ("host.xplane.pb", "host.chrome.json.gz"),
        ("../..", "profile.chrome.json.gz"),
        ("rank*.pt.trace.json", "rank.chrome.json.gz"),
        ("x\x1b[31m;rm -rf.json", "x_31m_rm_-rf.chrome.json.gz"),
    ],
)
def test_default_names_are_tame(name: str, expected: str) -> None:
    profile = load(PROFILE)
    profile.name = name
    assert str(writer.default_name(profile, "chrome")) == expected
