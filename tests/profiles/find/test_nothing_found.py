"""The errors for paths without a profile say where one may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.errors import NothingFound, UnreadableFile
from stepscope.profiles.find.paths import locate
from stepscope.profiles.load import load
from tests.builders.files import put


def message(path: str | Path) -> str:
    with pytest.raises(NothingFound) as caught:
        load(path)
    return str(caught.value)


def test_a_folder_without_profiles(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    put(logs, "a.py", "b.py", "c.py", "d.py", "sub/notes.md")
    put(logs, "data.json", content=b"{}")
    assert message(logs) == (
        f"No profile found in {logs} (6 files in 2 folders examined).\n"
        "  a.py, b.py, c.py and 1 more: not a profile, by its name (.py)\n"
        "  data.json: JSON without traceEvents, not a trace\n"
        "  notes.md: not a profile, by its name (.md)\n"
        "Supported: Chrome trace JSON, JAX device memory profiles (*.prof), Nsight Systems (*.sqlite, by nsys export), "
        "PyTorch (*.pt.trace.json[.gz]), PyTorch memory snapshots (*.pickle), PyTorch memory timelines (*.raw.json.gz), TensorFlow and JAX (*.xplane.pb), "
        "TensorFlow event files with RunMetadata, dumps of PyTorch's flight recorder (nccl_trace_rank_*), rocprofv3 (*_results.json)."
    )


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "0 files in 1 folder examined" in message(tmp_path / "empty")


def test_many_reasons_are_cut_loudly(tmp_path: Path) -> None:
    put(
        tmp_path / "logs",
        *(f"x.{ending}" for ending in ("py", "md", "txt", "log", "csv", "png", "pdf", "xml")),
    )
    assert "and 2 other reasons" in message(tmp_path / "logs")


def test_a_sibling_that_holds_profiles(tmp_path: Path) -> None:
    put(tmp_path, "validation/notes.txt", "train/plugins/profile/2026_11_14_23_49_41/vm.xplane.pb")
    assert message(tmp_path / "validation").endswith(f"A profile was found in {tmp_path}/train")


def test_a_parent_that_holds_profiles(tmp_path: Path) -> None:
    put(tmp_path, "x.pt.trace.json", "checkpoints/model.bin")
    assert message(tmp_path / "checkpoints").endswith(f"A profile was found in {tmp_path}")


def test_a_path_that_is_almost_right(tmp_path: Path) -> None:
    put(tmp_path, "profiles/trace.json")
    assert message(tmp_path / "profile") == (
        f"No such file or folder: {tmp_path}/profile\nDid you mean {tmp_path}/profiles?"
    )


def test_a_path_that_is_all_wrong(tmp_path: Path) -> None:
    assert message(tmp_path / "no" / "such") == (
        f"No such file or folder: {tmp_path}/no/such\nThe folder {tmp_path}/no does not exist either."
    )
    assert message(tmp_path / "zzz") == f"No such file or folder: {tmp_path}/zzz"


def test_a_pattern_without_matches(tmp_path: Path) -> None:
    assert message(f"{tmp_path}/*.json").startswith(f"No file matches {tmp_path}/*.json")


def test_an_empty_path() -> None:
    assert message("").startswith("The path is empty.")


def test_an_empty_file(tmp_path: Path) -> None:
    put(tmp_path, "empty.json", content=b"")
    with pytest.raises(UnreadableFile, match="it is empty"):
        load(tmp_path / "empty.json")


def test_names_promise_what_files_do_not_hold(tmp_path: Path) -> None:
    put(tmp_path, "a.pt.trace.json", "b.pt.trace.json", content=b"certainly not JSON")
    text = message(tmp_path)
    assert "2 files in 1 folder examined" in text
    assert "a.pt.trace.json, b.pt.trace.json: is not a profile: it is text, but not JSON." in text


@pytest.mark.parametrize("path", ["C:\\logs\\x.json", "C:/logs", "c:x"])
def test_drive_letters_are_no_urls(path: str) -> None:
    assert locate(path).filesystem is None
