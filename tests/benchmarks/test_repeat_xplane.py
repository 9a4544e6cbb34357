"""Repeated XPlane files: every byte that need not change is kept, times shift, and ids stay apart."""

from __future__ import annotations

from pathlib import Path

from benchmarks.repeat_xplane import fields, message, repeat
from stepscope.capture.files.protobuf import varint


def number(field: int, value: int) -> bytes:
    """A field that holds a number."""
    return varint(field << 3) + varint(value)


def stat_name(key: int, name: str) -> bytes:
    """An entry of a plane's table of stat names."""
    return message(5, number(1, key) + message(2, number(1, key) + message(2, name.encode())))


STATS = stat_name(1, "correlation_id") + stat_name(2, "step_num") + stat_name(3, "bytes") + stat_name(4, "_p")
STEP = number(1, 1) + number(3, 2_000_000) + message(4, number(1, 2) + number(4, 0))
KERNEL = (
    number(1, 2)
    + number(2, 5_000)
    + number(3, 1_000)
    + message(4, number(1, 1) + number(3, 300))
    + b"\x99\x06\1\2\3\4\5\6\7\x08"
)
COPY = (
    number(1, 3)
    + number(2, 7_000)
    + message(4, number(1, 3) + number(4, 64))
    + message(4, number(1, 4) + number(4, 0))
)
LINE = (
    number(1, 14)
    + message(2, b"Stream #14")
    + number(3, 40)
    + b"".join(message(4, event) for event in (STEP, KERNEL, COPY))
)
SPACE = message(1, message(2, b"/device:GPU:0") + message(3, LINE) + STATS) + message(4, b"host")
STRIDE_PS = 3_000_000  # two microseconds of events, and one to spare


def events_of(data: bytes) -> list[bytes]:
    """The events of the only line of the only plane."""
    plane = next(part.data or b"" for part in fields(data) if part.number == 1)
    line = next(part.data or b"" for part in fields(plane) if part.number == 3)
    return [part.data or b"" for part in fields(line) if part.number == 4]


def repeated(tmp_path: Path, at_least: int) -> tuple[int, bytes]:
    """How many events were written, and the file."""
    source, target = tmp_path / "a.xplane.pb", tmp_path / "b.xplane.pb"
    source.write_bytes(SPACE)
    return repeat(source, target, at_least), target.read_bytes()


def numbers(event: bytes) -> dict[int, int]:
    """The numbers directly in a message."""
    return {part.number: part.value for part in fields(event) if part.data is None}


def stats(event: bytes) -> list[dict[int, int]]:
    """The stats of an event."""
    return [numbers(part.data or b"") for part in fields(event) if part.number == 4]


def test_one_copy_is_the_file_with_every_offset_written_out(tmp_path: Path) -> None:
    count, data = repeated(tmp_path, 1)
    step, kernel, copy = events_of(data)
    assert (count, step, kernel, copy) == (3, number(2, 0) + STEP, KERNEL, COPY)
    assert data.endswith(message(4, b"host"))


def test_copies_shift_in_time(tmp_path: Path) -> None:
    count, data = repeated(tmp_path, 4)
    assert count == 6
    offsets = [numbers(event)[2] for event in events_of(data)]
    assert offsets == [0, 5_000, 7_000, STRIDE_PS, STRIDE_PS + 5_000, STRIDE_PS + 7_000]


def test_steps_go_on_and_ids_stay_apart(tmp_path: Path) -> None:
    _, _, _, step, kernel, copy = events_of(repeated(tmp_path, 4)[1])
    assert stats(step) == [{1: 2, 4: 1}]
    assert stats(kernel) == [{1: 1, 3: 601}]
    assert stats(copy) == [{1: 3, 4: 64}, {1: 4, 4: 0}]
