"""What follows a wait for the device, and what of it is the wait's."""

from __future__ import annotations

import pytest

from tests.builders.inline import check


def test_a_wait_for_the_device_owns_the_bubble_behind_it() -> None:
    check(
        """
        track     start  dur  name                       kind        launches
        main          0  100  ProfilerStep#1             annotation  -
        main          0  100  train.py(9): step          python      -
        main          0    5  aten::mm                   op          -
        main          1    3  cudaLaunchKernel           runtime     first
        main         10   45  aten::_local_scalar_dense  op          -
        main         12   40  cudaStreamSynchronize      runtime     -
        main         55   20  aten::mm                   op          -
        main         70    5  cudaLaunchKernel           runtime     second
        stream 7      5   45  first                      kernel      -
        stream 7     75   25  second                     kernel      -
        """,
        "compute=70 dispatch=4 device_gap=1 sync=25 (aten::_local_scalar_dense > train.py(9): step)",
    )


def test_a_copy_that_the_host_sat_through_is_a_wait() -> None:
    check(
        """
        track     start  dur  name                           kind        launches
        main          0  100  ProfilerStep#1                 annotation  -
        main          0   40  aten::copy_                    op          -
        main          0   40  cudaMemcpyAsync                runtime     Memcpy DtoH
        main         40   30  aten::mm                       op          -
        main         65    5  cudaLaunchKernel               runtime     gemm
        stream 7      5   30  Memcpy DtoH                    copy        -
        stream 7     70   30  gemm                           kernel      -
        """,
        "compute=30 copy=30 sync=40 (aten::copy_)",
    )


@pytest.mark.parametrize(
    ("begun", "parts"),
    [
        (
            10,
            "compute=140 dispatch=15 sync=35 (aten::item) device_gap=10",
        ),  # ahead by 95 µs: it is the wait's
        (95, "compute=55 dispatch=125 (aten::mm) sync=10 (aten::item) device_gap=10"),
    ],
)
def test_a_host_that_was_hardly_ahead_launches_as_late_without_the_wait(begun: int, parts: str) -> None:
    """Of what it does after the wait, only so much is the wait's as it waited while the device worked."""
    check(
        f"""
        track     start       dur  name                   kind        launches
        main          0       200  ProfilerStep#1         annotation  -
        main          5        {begun}  aten::mm               op          -
        main          {begun}  5  cudaLaunchKernel       runtime     first
        stream 7      {begun + 10}  {100 - begun}  first  kernel      -
        main          {begun + 5}  {115 - begun}  aten::item             op          -
        main          {begun + 5}  {115 - begun}  cudaStreamSynchronize  runtime     -
        main        120        25  aten::mm               op          -
        main        140         5  cudaLaunchKernel       runtime     second
        stream 7    150        50  second                 kernel      -
        """,
        parts,
    )


def test_what_a_host_lost_in_one_wait_it_lacks_after_the_next() -> None:
    """Held up for 90 µs by the first wait, of which it was late by 15 µs there: without the waits, it would not be late after the second."""
    check(
        """
        track     start  dur  name                   kind        launches
        main          0  300  ProfilerStep#1         annotation  -
        main          0    5  cudaLaunchKernel       runtime     first
        stream 7      5   95  first                  kernel      -
        main         10   95  aten::item             op          -
        main         10   95  cudaStreamSynchronize  runtime     -
        main        105   15  aten::mm               op          -
        main        115    5  cudaLaunchKernel       runtime     second
        stream 7    120   20  second                 kernel      -
        main        130   20  aten::item             op          -
        main        130   20  cudaStreamSynchronize  runtime     -
        main        150   50  aten::mm               op          -
        main        195    5  cudaLaunchKernel       runtime     third
        stream 7    200  100  third                  kernel      -
        """,
        "compute=215 dispatch=5 sync=80 (aten::item)",
    )


def test_long_work_of_the_user_after_a_wait_is_not_the_waits() -> None:
    check(
        """
        track     start  dur   name                   kind        launches
        main        -50    10  cudaLaunchKernel       runtime     first
        main          0  1000  ProfilerStep#1         annotation  -
        main          0    50  cudaDeviceSynchronize  runtime     -
        main         60   600  train.py(7): metrics   python      -
        main        700    10  cudaLaunchKernel       runtime     gemm
        stream 7      0    20  first                  kernel      -
        stream 7    710   290  gemm                   kernel      -
        """,
        "compute=290 python=600 (train.py(7): metrics) dispatch=50 (cudaLaunchKernel) sync=40 (cudaDeviceSynchronize)",
    )


def test_input_after_a_wait_is_input() -> None:
    check(
        """
        track     start  dur  name                                    kind        launches
        main        -50   10  cudaLaunchKernel                        runtime     first
        main          0  100  ProfilerStep#1                          annotation  -
        main          0   20  cudaDeviceSynchronize                   runtime     -
        main         20   50  enumerate(DataLoader)#_Single.__next__  annotation  -
        main         70   10  cudaLaunchKernel                        runtime     gemm
        stream 7      0   10  first                                   kernel      -
        stream 7     80   20  gemm                                    kernel      -
        """,
        "compute=20 input=50 (enumerate(DataLoader)#_Single.__next__) dispatch=10 (cudaLaunchKernel) sync=10 (cudaDeviceSynchronize)",
    )
