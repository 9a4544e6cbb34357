"""Sorts in compiled programs: what is read of their rows, and what goes with them."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.sorts import ProgramSort, program_sorts
from tests.builders.hlo import program

_CODE = """
before:
  x = f32[4,4096] parameter(0)
  y = f32[4,4096] negate(x)
cuts:
  order = s32[4,4096] parameter(0)
  part = s32[4,8] slice(order) slices=0:4,{start}:{end}
  turned = s32[4,8] reverse(part) dims=1
sums:
  order = s32[4,4096] parameter(0)
  twice = s32[4,4096] add(order, order)
main:
  scores = f32[4,4096] parameter(0)
  negated = f32[4,4096] fusion(scores) calls=before
  places = s32[4,4096] iota()
  sort.1 = (f32[4,4096],s32[4,4096]) {sort}
  order = s32[4,4096] get-tuple-element(sort.1) index=1
  {last}
"""
_SORT = "sort(negated,places) dims=1 calls=before"
_CUT = "first = s32[4,8] fusion(order) calls=cuts"


def sorts(start: int = 0, end: int = 8, sort: str = _SORT, last: str = _CUT) -> list[ProgramSort]:
    return program_sorts(read_module(program(_CODE.format(start=start, end=end, sort=sort, last=last))))


def test_the_first_entries_of_a_row() -> None:
    names = frozenset(("sort.1", "negated", "places"))
    assert sorts() == [ProgramSort(names, rows=4, length=4096, kept=8, element="fp32", rank=2)]


@pytest.mark.parametrize(
    ("start", "end", "kept"), [(4088, 4096, 8), (1, 9, 9), (59, 67, 67), (4029, 4037, 67)]
)
def test_how_far_they_reach(start: int, end: int, kept: int) -> None:
    """59 is what stands between the bounds of two dimensions."""
    assert [one.kept for one in sorts(start, end)] == [kept]


def test_a_library_sorts() -> None:
    found = sorts(sort="custom-call(negated,places) target=__cub$DeviceRadixSort")
    assert [one.kept for one in found] == [8]


@pytest.mark.parametrize(
    "changed",
    [
        {"start": 2044, "end": 2052},
        {"sort": f"{_SORT} op_name=jit(f)/top_k"},
        {"last": "all = s32[4,4096] fusion(order) calls=sums"},
        {"last": "all = s32[4,4096] copy(order)"},
        {"last": "all = (s32[4,4096]) tuple(order)"},
        {"last": "some = s32[4,8] gather(order, places)"},
    ],
    ids=["the middle", "a top-k", "all in a kernel", "all", "returned", "chosen by index"],
)
def test_what_needs_the_sort(changed: dict[str, object]) -> None:
    assert sorts(**changed) == []  # type: ignore[arg-type]


def test_an_order_that_the_program_returns() -> None:
    assert sorts(last="") == []


def test_a_function_that_is_named_after_it() -> None:
    assert sorts(sort=f"{_SORT} op_name=jit(top_k_items)/sort")
