"""Collectives of compiled programs: size, type and group of the instruction that the work is named after."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.collectives.xla_programs import program_facts
from stepscope.trace.trace import Trace
from tests.builders.gpu_trace import gpu_trace

F32, BF16, TUPLE = 11, 16, 13


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    """A protocol-buffer message; small numbers only."""
    out = b""
    for number, value in fields:
        raw = value.encode() if isinstance(value, str) else value
        wire = 0 if isinstance(raw, int) else 2
        out += varint(number << 3 | wire) + (
            varint(raw) if isinstance(raw, int) else varint(len(raw)) + bytes(raw)
        )
    return out


def varint(value: int) -> bytes:
    """Seven bits a byte."""
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value > 0x7F else bytes([value])


def array(element: int, *sizes: int) -> bytes:
    """A shape."""
    return message((2, element), *((3, size) for size in sizes))


def program(name: str, opcode: str, shape: bytes, *groups: tuple[int, bytes], devices: int = 4) -> bytes:
    """A program of one instruction on so many devices."""
    instruction = message((1, name), (2, opcode), (3, shape), *groups)
    assignment = message((1, 1), (2, devices), *((3, message((1, at))) for at in range(devices)))
    return message((1, message((1, "jit_step"), (3, message((2, instruction), (5, 1))), (15, assignment))))


def facts(hlo: bytes, name: str, rank: int = 0, world: int = 4) -> dict[str, object]:
    """What is told of the only collective of a rank that has one device."""
    trace = gpu_trace(
        "host | 0 | 100 | annotation | ProfilerStep#1\nstream 7 | 10 | 20 | kernel | nccl",
        ops={1: {"scope": f"jit_step/{name}"}},
    )
    modules = pl.DataFrame(
        {"name": ["jit_step"], "program_id": [1], "hlo": [hlo]}, schema=trace.modules.schema
    )
    info = replace(trace.info, rank=rank, world_size=world)
    trace = Trace({**trace.tables, "modules": modules, "traces": info.frame()})
    return program_facts(trace, pl.Series([1], dtype=pl.UInt32)).row(0, named=True)


LISTED = ((49, message((1, 0), (1, 2))), (49, message((1, 1), (1, 3))))
IOTA = ((92, message((1, 2), (2, 2), (3, 2), (3, 2), (4, 1), (4, 0))),)
# Axes "data" of 2 and "model" of 2: along the first.
MESH = (
    (
        93,
        message(
            (1, message((1, message((1, "data"), (2, 2))), (1, message((1, "model"), (2, 2))))), (2, b"")
        ),
    ),
)


@pytest.mark.parametrize(
    "groups", [LISTED, ((87, message((1, LISTED[0][1]), (1, LISTED[1][1]))),), IOTA, MESH]
)
def test_groups(groups: tuple[tuple[int, bytes], ...]) -> None:
    """However XLA writes them: 0 and 2 in one, 1 and 3 in the other."""
    hlo = program("all-reduce.3", "all-reduce", array(F32, 8, 4), *groups)
    told = facts(hlo, "all-reduce.3", rank=3)
    assert told["program_ranks"] == "[1, 3]"
    assert (told["program_group"], told["program_size"]) == ("2 groups of 2", 2)
    assert (told["program_dtype"], told["program_bytes"]) == ("float32", 128)


def test_all_devices_are_no_group() -> None:
    told = facts(program("all-reduce.3", "all-reduce", array(BF16, 8)), "all-reduce.3")
    assert (told["program_group"], told["program_size"], told["program_ranks"]) == (None, 4, None)


@pytest.mark.parametrize(
    ("opcode", "shape", "size"),
    [
        ("all-gather", array(F32, 8), 32),
        ("all-gather-start", message((2, TUPLE), (4, array(F32, 4)), (4, array(F32, 8))), 32),
        ("reduce-scatter", array(F32, 4), 32),
        ("all-reduce", message((2, TUPLE), (4, array(F32, 4)), (4, array(F32, 8))), 48),
    ],
)
def test_the_size_is_that_of_the_whole_operation(opcode: str, shape: bytes, size: int) -> None:
    """An all-gather's output, a reduce-scatter's input, all parts of an all-reduce."""
    told = facts(program(f"{opcode}.1", opcode, shape, *LISTED), f"{opcode}.1")
    assert told["program_bytes"] == size


FOUR, EIGHT = array(F32, 4), array(F32, 8)
CONTEXT = array(8)


@pytest.mark.parametrize(
    ("opcode", "shape", "size"),
    [
        ("all-reduce-start", message((2, TUPLE), (4, FOUR), (4, EIGHT)), 48),
        (
            "all-gather-start",
            message((2, TUPLE), (4, message((2, TUPLE), (4, FOUR), (4, FOUR))), (4, message((2, TUPLE), (4, EIGHT), (4, EIGHT)))),
            64,
        ),
        ("collective-permute-start", message((2, TUPLE), (4, EIGHT), (4, EIGHT), (4, CONTEXT), (4, CONTEXT)), 32),
    ],
)  # fmt: skip
def test_collectives_of_several_arrays_count_all_of_them(opcode: str, shape: bytes, size: int) -> None:
    told = facts(program(f"{opcode}.1", opcode, shape, *LISTED), f"{opcode}.1")
    assert (told["program_bytes"], told["program_dtype"]) == (size, "float32")


@pytest.mark.parametrize("name", ["reduce-scatter-start", "reduce-scatter-done"])
def test_what_starts_and_what_ends_a_collective_tell_the_same(name: str) -> None:
    """XLA wraps a reduce-scatter: its groups and what goes in are written inside of what is started."""
    wrapped = message(
        (2, message((1, "given"), (2, "parameter"), (3, EIGHT), (35, 11))),
        (2, message((1, "inner"), (2, "reduce-scatter"), (3, FOUR), (35, 12), (36, b"\x0b"), *LISTED)),
        (5, 2),
    )
    started = message((2, TUPLE), (4, message((2, TUPLE), (4, EIGHT))), (4, FOUR), (4, CONTEXT))
    start = message((1, "reduce-scatter-start"), (2, "async-start"), (3, started), (35, 1), (38, 2))
    end = message((1, "reduce-scatter-done"), (2, "async-done"), (3, FOUR), (35, 2), (36, b"\x01"))
    entry = message((2, start), (2, end), (5, 1))
    hlo = message((1, message((1, "jit_step"), (3, wrapped), (3, entry), (6, 1))))
    told = facts(hlo, name, rank=3)
    assert (told["program_bytes"], told["program_dtype"]) == (32, "float32")
    assert told["program_group"] == "2 groups of 2"


@pytest.mark.parametrize(
    "group",
    [(92, message((2, 1 << 40), (3, 1 << 40))), (93, b"\xff\xff"), (93, message((2, message((1, 9)))))],
)
def test_groups_that_cannot_be(group: tuple[int, bytes]) -> None:
    """The size is known all the same."""
    told = facts(program("all-reduce.1", "all-reduce", array(F32, 8), group), "all-reduce.1")
    assert told["program_bytes"] == 32
    assert told["program_ranks"] is None
