"""Copies of arguments that are not donated, in the code of programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.undonated import undonated_copies
from tests.builders.hlo import program
from tests.builders.protobuf import field

WRITES = """
writing:
  whole = f32[100,8] parameter(0)
  part = f32[4,8] parameter(1)
  at = s32[] parameter(2)
  written = f32[100,8] {write}(whole, part, at)
main:
  cache = f32[100,8] parameter(0) op_name=cache
  rows = f32[4,8] parameter(1) op_name=rows
  at = s32[] parameter(2) op_name=at
  copy.1 = f32[100,8] copy({source})
  result = f32[100,8] {caller}(copy.1, rows, at) calls=writing
"""


def code(write: str = "dynamic-update-slice", caller: str = "fusion", source: str = "cache") -> bytes:
    return program(WRITES.format(write=write, caller=caller, source=source))


@pytest.mark.parametrize(
    "made", [code(), code(write="scatter"), code(caller="while")], ids=["slice", "scatter", "loop"]
)
def test_an_argument_is_copied_before_some_rows_are_written(made: bytes) -> None:
    found = undonated_copies(Module(made))
    assert found is not None
    assert (found.names, found.arguments, found.bytes) == (frozenset({"copy.1"}), ("cache",), 3200)


@pytest.mark.parametrize("made", [code(write="add"), code(source="rows")], ids=["all", "another"])
def test_what_is_copied_for_another_reason(made: bytes) -> None:
    assert undonated_copies(Module(made)) is None


def test_what_is_donated_and_copied_all_the_same_stays() -> None:
    """A result takes the memory of argument 0: the program needs the old values too."""
    alias = field(8, field(1, field(2, 0)))
    made = code()
    assert undonated_copies(Module(made + field(1, alias))) is None


RETURNS = """
writing:
  whole = f32[100,8] parameter(0)
  part = f32[4,8] parameter(1)
  at = s32[] parameter(2)
  written = f32[100,8] dynamic-update-slice(whole, part, at)
main:
  first = f32[100,8] parameter(0) op_name=first
  second = f32[100,8] parameter(1) op_name=second
  rows = f32[4,8] parameter(2) op_name=rows
  at = s32[] parameter(3) op_name=at
  copy.1 = f32[100,8] copy(first)
  written.1 = f32[100,8] fusion(copy.1, rows, at) calls=writing
  copy.2 = f32[100,8] copy(second)
  written.2 = f32[100,8] fusion(copy.2, rows, at) calls=writing
  {last}
"""


def names(last: str) -> frozenset[str]:
    found = undonated_copies(Module(program(RETURNS.format(last=last))))
    return found.names if found is not None else frozenset()


@pytest.mark.parametrize(
    ("last", "copies"),
    [
        ("both = (f32[100,8], f32[100,8]) tuple(written.1, written.2)", {"copy.1", "copy.2"}),
        ("both = (f32[100,8], f32[4,8]) tuple(written.1, rows)", {"copy.1"}),
        ("total = f32[8] reduce(written.1, written.2)", set()),
        ("change = f32[100,8] subtract(written.1, first)", set()),
        ("both = (f32[100,8], f32[100,8]) tuple(written.1, first)", set()),
    ],
    ids=["both", "one", "none", "old values", "returned as it was"],
)
def test_a_result_takes_the_memory_of_one_argument_that_is_not_needed_any_more(
    last: str, copies: set[str]
) -> None:
    assert names(last) == copies
