"""Files that hold no trace: each is told what it is, where that is known, and what can be read instead."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest

from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.registry import describe_supported
from stepscope.formats.source import Source
from tests.builders.documents import event
from tests.formats.ways import Way


def refusal(path: Path) -> str:
    """What is said of the file, without the file's name and the list of what can be read."""
    with pytest.raises(UnreadableFile) as told:
        read(Source(str(path)))
    assert told.value.fix == describe_supported()
    assert told.value.what.startswith(f"{path} ")
    return told.value.what.removeprefix(f"{path} ")


def put(folder: Path, data: bytes) -> Path:
    path = folder / "file.json"
    path.write_bytes(data)
    return path


def zipped(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return made.getvalue()


def database(folder: Path) -> bytes:
    with sqlite3.connect(folder / "made.sqlite") as made:
        made.execute("CREATE TABLE kernels (start INTEGER)")
    made.close()
    return (folder / "made.sqlite").read_bytes()


SNAPSHOT = {"segments": [{"address": 1, "total_size": 2, "blocks": []}], "device_traces": [[]]}
BINARY: list[tuple[str, bytes, str]] = [
    ("empty", b"", "it is empty: the profiler wrote nothing, or the job ended before it could"),
    (
        "packed and empty",
        gzip.compress(b""),
        "it is empty: the profiler wrote nothing, or the job ended before it could",
    ),
    ("zeros", bytes(5000), "it holds only zero bytes: the disk was full, or a copy broke off"),
    ("cut gzip", gzip.compress(b"{}" * 99)[:9], "its gzip stream is cut or damaged before the first byte"),
    ("Excel", zipped("[Content_Types].xml", "xl/workbook.xml"), "it is an Excel sheet"),
    (
        "old Excel",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest",
        "it is an old Office document, such as an Excel sheet",
    ),
    ("checkpoint", zipped("archive/data.pkl"), "it is a PyTorch checkpoint"),
    ("npz", zipped("arr_0.npy"), "it is a NumPy .npz archive"),
    ("zip", zipped("trace.json"), "it is a zip archive; unpack it first if it holds a profile"),
    (
        "pickle",
        pickle.dumps({"a": 1}, 4),
        "it is a Python pickle, which is never opened here: pickles can run code",
    ),
    ("numpy", b"\x93NUMPY\x01\0", "it is a NumPy array"),
    ("parquet", b"PAR1\x15\0", "it is a Parquet file"),
    ("zstd", b"\x28\xb5\x2f\xfd\0", "it is packed with Zstandard; unpack it first: zstd -d"),
    ("xz", b"\xfd7zXZ\0", "it is packed with xz; unpack it first: xz -d"),
    ("bzip2", b"BZh91AY", "it is packed with bzip2; unpack it first: bzip2 -d"),
    ("web page", b"<!DOCTYPE html><html>", "it is a web page"),
    ("text", b"step 1 loss 0.3\n", "it is text, but not JSON"),
    ("number", b" 42\n", "it is JSON, but a single value"),
    ("string", b'"traceEvents"', "it is JSON, but a single value"),
    ("null", b"null", "it is JSON, but a single value"),
    ("binary", b"\x07\0\x01\0\x02", "it is binary, and of no format that is known here"),
]


@pytest.mark.parametrize(("data", "what"), [case[1:] for case in BINARY], ids=[case[0] for case in BINARY])
def test_what_is_not_json(tmp_path: Path, data: bytes, what: str) -> None:
    assert refusal(put(tmp_path, data)) == f"is not a profile: {what}."


@pytest.mark.parametrize("pack", [False, True])
def test_a_database(tmp_path: Path, pack: bool) -> None:
    data = database(tmp_path)
    path = put(tmp_path, gzip.compress(data) if pack else data)
    with pytest.raises(UnreadableFile) as told:
        read(Source(str(path)))
    assert told.value.what == (
        f"{path} is an SQLite database without the tables of Nsight Systems; it has kernels."
    )
    assert told.value.fix == "Export the report with: nsys export --type sqlite REPORT.nsys-rep"


DOCUMENTS: list[tuple[str, Any, str]] = [
    (
        "execution trace",
        {
            "schema": "1.1.1-chakra.0.0.4",
            "pid": 1,
            "time": "",
            "start_ts": 1,
            "nodes": [{"id": 1, "ctrl_deps": 0}],
        },
        "it is a PyTorch execution trace, which has no times; put it beside a profile of the same process by torch.profiler",
    ),
    (
        "memory snapshot",
        SNAPSHOT,
        "it is a CUDA memory snapshot as JSON; stepscope reads the pickle that torch.cuda.memory._dump_snapshot writes",
    ),
    (
        "speedscope",
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": []},
            "profiles": [],
        },
        "it is a speedscope profile",
    ),
    (
        "notebook",
        {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5},
        "it is a Jupyter notebook",
    ),
    ("plain object", {"loss": [1, 2], "lr": 0.1}, "its members are 'loss', 'lr'"),
    ("many members", {str(i): i for i in range(9)}, "its members are '0', '1', '2', '3', '4', '5'"),
    ("list of numbers", [1, 2, 3], "what its list holds are not events"),
    ("list of lists", [[1], [2]], "what its list holds are not events"),
    ("list of records", [{"step": 1, "loss": 0.3}, {"step": 2}], "what its list holds are not events"),
    ("events that are none", {"traceEvents": [1, "x"], "a": 1}, "what its list holds are not events"),
    ("events that are no list", {"traceEvents": {"a": 1}}, "its `traceEvents` are not a list"),
    ("no events", {"traceEvents": []}, "its list of events is empty"),
    (
        "no events at all",
        {"schemaVersion": 1, "deviceProperties": [], "traceEvents": []},
        "its list of events is empty",
    ),
    ("empty list", [], "its list of events is empty"),
    ("empty object", {}, "its list of events is empty"),
]


@pytest.mark.parametrize(
    ("document", "what"), [case[1:] for case in DOCUMENTS], ids=[case[0] for case in DOCUMENTS]
)
def test_json_that_is_no_trace(way: Way, document: Any, what: str) -> None:
    path = way.put(json.dumps(document).encode())
    assert refusal(path) == f"is JSON but holds no trace events: {what}."


def test_a_trace_that_is_cut_before_its_first_event(way: Way) -> None:
    data = json.dumps({"schemaVersion": 1, "deviceProperties": [{"name": "NVIDIA H200"}]}).encode()
    path = way.put(data[:40])
    assert refusal(path) == (
        "is JSON but holds no trace events: it is cut short before the first one. "
        "The file ends at byte 40 without closing its list of events."
    )


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\n\t ", b"\xef\xbb\xbf\n"])
def test_bytes_before_the_document(way: Way, mark: bytes) -> None:
    trace = way(mark + json.dumps([event(None, "a")]).encode())
    assert trace.events["name"].to_list() == ["a"]


def test_half_a_byte_order_mark(way: Way) -> None:
    with pytest.raises(UnreadableFile, match=r"file.json is not JSON$"):
        way(b"\xef[      ]", "file.json")


def test_bytes_after_the_document(way: Way) -> None:
    data = json.dumps({"traceEvents": [event(None, "a")]}).encode()
    trace = way(data + b"\n\n")
    assert trace.problems.is_empty()
    trace = way(data + b"\n{}")
    assert trace.problems.row(0) == (
        "trailing-bytes",
        "info",
        "The file continues after the end of the trace",
        f"3 bytes after byte {len(data):,} are not part of the trace and were not read.",
        "Give each process its own file.",
        1,
    )
