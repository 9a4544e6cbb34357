"""Modules whose results are joined: heads of attention written as modules of their own need one another as little as layers of channels do."""

from __future__ import annotations

import pytest

from stepscope.analysis.host.loops import Loops, find_loops
from tests.analysis.compute.traces import compute_trace

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"
GIVEN, PIECE = "[4,32,96]", "[4,32,16]"


def heads(
    count: int = 6,
    piece: str = PIECE,
    joined: int | None = None,
    between: str | None = None,
    others: str | None = None,
    joint: str = "aten::cat",
) -> Loops:
    """A function that calls so many heads, each with a function of its own and two products, and joins what they return."""
    lines = [
        HEAD,
        "main  0  3000  ProfilerStep#1  annotation  -  -  -",
        "main  0  900  net.py(13): forward  python  -  -  -",
    ]
    for k in range(count):
        at = 10 + 60 * k
        given = others if others and k == count - 1 else GIVEN
        lines += [
            f"main  {at}  50  nn.Module: Head_{k}  python  -  -  -",
            f"main  {at + 1}  48  net.py(7): forward  python  -  -  -",
        ]
        for product in (0, 1):
            begin = at + 2 + 20 * product
            lines += [
                f"main  {begin}  16  aten::linear  op  -  [{given},[16,96]]  float,float",
                f"main  {begin + 2}  8  cudaLaunchKernel  runtime  gemm{k}{product}  -  -",
                f"stream 7  {begin + 9}  3  gemm{k}{product}  kernel  -  -  -",
            ]
        if between and k == 1:
            lines += [f"main  {at + 52}  6  {between}  op  -  [{GIVEN}]  float"]
    pieces = ",".join([piece] * (count if joined is None else joined))
    end = 20 + 60 * count
    lines += [
        f"main  {end}  20  {joint}  op  -  [[{pieces}],[]]  float",
        f"main  {end + 2}  8  cudaLaunchKernel  runtime  join  -  -",
        f"stream 7  {end + 12}  3  join  kernel  -  -  -",
    ]
    return find_loops(compute_trace("\n".join(lines)))


def test_heads_that_are_joined_are_a_loop() -> None:
    """Down to four of them; a stack joins as well."""
    for count in (4, 6, 12):
        assert heads(count).found.select("iterations", "siblings", "launches").rows() == [
            (count, True, 2 * count)
        ]
    assert len(heads(joint="aten::stack").found) == 1


@pytest.mark.parametrize("between", ["aten::view", "aten::select"])
def test_views_between_them_compute_nothing(between: str) -> None:
    assert len(heads(between=between).found) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"count": 3},
        {"piece": GIVEN},
        {"joined": 7},
        {"joined": 0},
        {"between": "aten::add"},
        {"others": "[4,16,96]"},
        {"joint": "aten::sum"},
    ],
    ids=[
        "three",
        "may be given on",
        "others are joined, too",
        "not known",
        "work between",
        "other work",
        "not joined",
    ],
)
def test_modules_that_may_need_one_another_are_none(other: dict[str, int | str]) -> None:
    assert heads(**other).found.is_empty()  # type: ignore[arg-type]
