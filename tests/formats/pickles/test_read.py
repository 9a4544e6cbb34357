"""Pickles: data is read, and whatever else a file asks for ends in one sentence, with nothing run."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import sys
from pathlib import Path

import pytest

from stepscope.errors import UnreadableFile
from stepscope.formats.pickles.read import read_pickle

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no limits of the system to rely on")

VALUE = {"a": [1, -1, 2**63, 1.5, None, True], "b": {"text": "ä", "deep": [[[]]]}}


class Call:
    """Pickles as a call of os.system that leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(6))
def test_data_of_every_protocol(protocol: int) -> None:
    assert read_pickle(pickle.dumps(VALUE, protocol)) == VALUE


def test_a_file_plain_or_packed(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "a.pickle").write_bytes(pickle.dumps(VALUE))
    (tmp_path / "b.pickle.gz").write_bytes(gzip.compress(pickle.dumps(VALUE)))
    assert read_pickle(str(tmp_path / "a.pickle")) == read_pickle(str(tmp_path / "b.pickle.gz")) == VALUE


def test_tuples_sets_bytes_and_numbers_as_keys() -> None:
    assert read_pickle(pickle.dumps({1: (2, 3), "s": {4}, "b": b"\xff"})) == {
        "1": [2, 3],
        "s": [4],
        "b": "\xff",
    }


@pytest.mark.parametrize("protocol", range(6))
def test_a_call_runs_nothing(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(UnreadableFile, match=r"asks for (posix|nt)\.system"):
        read_pickle(pickle.dumps({"segments": [Call(mark)]}, protocol))
    assert not mark.exists()


def _global(opcode: bytes) -> bytes:
    return b"\x80\x04(" + opcode + b"os\nsystem\nX\x04\x00\x00\x00true\x85R."


def _many_lists(depth: int) -> bytes:
    return b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b"."


def _doubling(levels: int) -> bytes:
    """A list that holds the one before it twice, again and again: small in memory, endless when written out."""
    out = io.BytesIO(b"\x80\x04")
    out.seek(2)
    out.write(b"]\x94")
    for level in range(levels):
        out.write(b"](" + b"h" + bytes([level]) + b"h" + bytes([level]) + b"e\x94")
    out.write(b".")
    return out.getvalue()


HOSTILE = {
    "global": b"cos\nsystem\n(Vtrue\ntR.",
    "inst": b"(Vtrue\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nVtrue\no.",
    "stack-global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
    "newobj": b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x01 \x85\x81.",
    "extension": b"\x80\x02\x82\x01.",
    "persistent": b"Pelsewhere\n.",
    "build": b"\x80\x04]}\x8c\x01ak\x05sb.",
    "buffer": b"\x80\x05\x97.",
    "memo": b"\x80\x04]r\xff\xff\xff\x7f.",
    "text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 30) + b"x",
    "bytes": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"x",
    "number": b"\x80\x04\x8b" + struct.pack("<i", 1 << 30) + b"x",
    "nested": _many_lists(200_000),
    "doubling": _doubling(60),
    "itself": b"\x80\x04]\x94h\x00a.",
    "empty": b"",
    "no stop": b"\x80\x04]",
    "protocol": b"\x80\x99].",
    "stack": b"\x80\x04.",
    "keys": b"\x80\x04}]K\x01s.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_end_in_one_sentence(name: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read_pickle(HOSTILE[name])
    assert caught.value.what.startswith("The pickle is")
    assert "\n" not in caught.value.what
    assert caught.value.what.count(". ") == 0


def test_the_hostile_ones_are_what_they_say() -> None:
    names = {opcode.name for opcode, _, _ in pickletools.genops(HOSTILE["stack-global"])}
    assert {"STACK_GLOBAL", "REDUCE"} <= names


def test_a_cut_file_says_where() -> None:
    with pytest.raises(UnreadableFile, match="cut short: the pickle ends after 20 bytes"):
        read_pickle(pickle.dumps(VALUE)[:20])
