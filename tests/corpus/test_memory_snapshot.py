"""A memory snapshot that was recorded elsewhere: its rows equal what a refusing unpickler reads."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from stepscope.formats import read
from stepscope.formats.source import Source

FILE = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent")) / "memory" / "snapshot.pickle"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not FILE.exists(), reason="STEPSCOPE_CORPUS_2 has no memory snapshot"),
]


class Refusing(pickle.Unpickler):
    """Data alone."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def test_rows_equal_the_file() -> None:
    with FILE.open("rb") as file:
        value = Refusing(file).load()
    trace = read(Source(str(FILE)))
    (events,) = value["device_traces"]
    blocks = [block for segment in value["segments"] for block in segment["blocks"]]
    assert trace.memory["requested"].to_list() == [each["size"] for each in events]
    assert trace.memory["address"].to_list() == [each["addr"] for each in events]
    assert trace.blocks["bytes"].to_list() == [each["size"] for each in blocks]
    assert trace.blocks["segment"].n_unique() == len(value["segments"])
    stacks = trace.frames.group_by("stack", maintain_order=True).agg("line")
    lines = dict(stacks.iter_rows())
    assert [lines[stack] for stack in trace.memory["stack"]] == [
        [frame["line"] for frame in each["frames"]] for each in events
    ]
