"""Binary files that went through a text decoder are recognised as that."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.mangled import is_mangled
from stepscope.formats.source import Source
from tests.builders.tpu import fusion, tpu_job, wait


def mangled(data: bytes) -> bytes:
    return data.decode("utf-8", "replace").encode()


@pytest.mark.parametrize("name", ["a.xplane.pb", "a.xplane.pb.gz", "profile"])
def test_one_clear_message(tmp_path: Path, name: str) -> None:
    data = tpu_job([fusion(number * 10, 9, f"fusion.{number}") for number in range(40)] + [wait(900, 50)])
    path = tmp_path / name
    path.write_bytes(mangled(gzip.compress(data) if name.endswith(".gz") else data))
    with pytest.raises(UnreadableFile) as found:
        read(Source(str(path)))
    assert found.value.what.startswith(f"{path} was decoded as text on its way here")
    assert "'rb'" in str(found.value.fix)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\xff" * 100,
        '{"traceEvents": [{"name": "\ufffd\ufffd\ufffd\ufffd\ufffd"}]}'.encode(),
        b"\x00\x01 binary without any",
        ("\x01" * 10_000 + "\ufffd" * 5).encode(),
    ],
)
def test_other_files_are_not(head: bytes) -> None:
    assert not is_mangled(head)


def test_a_character_may_be_cut_off_at_the_end() -> None:
    assert is_mangled(("\x01\ufffd" * 50).encode()[:-1])
