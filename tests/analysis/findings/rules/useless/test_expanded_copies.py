"""Keys and values that are copied for each query head that shares them, and other copies that only repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.useless import expanded_copies
from stepscope.analysis.serving.workload import INFERENCE
from tests.analysis.findings.op_steps import GEMM, Op, case

COPY = "void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda>"
FLASH = "pytorch_flash::flash_fwd_splitkv_kernel"
CACHE, REPEATED = "[8,2,4096,64]", "[8,2,4,4096,64]"
FULL = "[8,8,4096,64]"


def expand(sizes: str = REPEATED, source: str = "[8,2,1,4096,64]") -> Op:
    return Op("aten::expand", f"[{source},[],[]]", inputs=f'["","{sizes}","False"]')


def copied(shape: str = REPEATED, length: int = 200) -> Op:
    inner = Op("aten::copy_", f"[{shape},{shape},[]]", COPY, length)
    return Op("aten::clone", f"[{shape},[]]", inside=(inner,))


def by_interleaving() -> list[Op]:
    return [Op("aten::repeat_interleave", f"[{CACHE},[],[],[]]", inside=(expand(), copied()))]


def by_reshaping() -> list[Op]:
    return [expand(), Op("aten::reshape", f"[{REPEATED},[]]", inside=(copied(),))]


def by_making_contiguous() -> list[Op]:
    return [expand("[-1,-1,4,-1,-1]"), Op("aten::contiguous", f"[{REPEATED},[]]", inside=(copied(),))]


def by_selecting() -> list[Op]:
    inputs = '["","1",""]'
    return [Op("aten::index_select", f"[{CACHE},[],[8]]", COPY, 200, inputs=inputs)]


WAYS = (by_interleaving, by_reshaping, by_making_contiguous, by_selecting)


def attention(keys: str = FULL) -> Op:
    shapes = f"[[8,8,1,64],{keys},{keys},[],[],[],[],[]]"
    inner = Op("aten::_cudnn_attention_forward", shapes, FLASH, 400, dtypes=",".join(["c10::BFloat16"] * 3))
    return Op("aten::scaled_dot_product_attention", shapes, inside=(inner,))


def found_in(ops: Sequence[Op]) -> Finding | None:
    return expanded_copies.find(case(*[ops] * 3, workload=INFERENCE))


@pytest.mark.parametrize("way", WAYS)
def test_keys_and_values_that_are_copied_for_each_query_head(way: Callable[[], list[Op]]) -> None:
    made = case(*[[*way(), *way(), attention()]] * 3, workload=INFERENCE)
    found = expanded_copies.find(made)
    assert found is not None
    assert found.evidence["times"] == 4
    assert "400 µs of 1.00 ms" in found.detail
    assert "enable_gqa=True" in found.fix
    assert found.speedup.mid > 1.15
    # The attention reads a quarter, at best in a quarter of its 400 µs.
    left = made.changes["expanded-copies"].largest.items["device_ns"]
    assert left.max() == pytest.approx(100_000, rel=0.02)


def test_a_product_that_takes_the_copy() -> None:
    product = Op("aten::bmm", "[[64,1,64],[64,64,4096]]", GEMM, 400)
    found = found_in([*by_reshaping(), Op("aten::matmul", "[[8,8,1,64],[8,8,64,4096]]", inside=(product,))])
    assert found is not None
    assert "200 µs of 1.00 ms" in found.detail


@pytest.mark.parametrize(
    "ops",
    [
        [expand("[8,2,1,4096,64]"), copied("[8,2,1,4096,64]"), attention(CACHE)],
        [*by_reshaping(), attention("[8,8,2048,64]")],
        [*by_reshaping()],
        [expand(), *[Op("aten::mul", "[[8,8],[8,8]]")] * 2, copied(), attention()],
        [expand("damaged"), copied(), attention()],
        [
            Op("aten::index_select", "[[1000,64],[],[65536]]", COPY, 100, inputs='["","0",""]'),
            attention("[1,8,8192,64]"),
        ],
    ],
    ids=[
        "of as many",
        "read by another",
        "read by nothing",
        "of something else",
        "damaged",
        "rows of a table",
    ],
)
def test_other_copies(ops: list[Op]) -> None:
    assert found_in(ops) is None


def test_an_attention_that_arithmetic_decides_stays_as_it_is() -> None:
    """A long query reads each key for thousands of rows: the copies go, and nothing else."""
    long = Op("aten::scaled_dot_product_attention", f"[{FULL},{FULL},{FULL},[],[],[],[],[]]", FLASH, 450)
    made = case(*[[*by_reshaping(), *by_reshaping(), long]] * 3, workload=INFERENCE)
    assert expanded_copies.find(made) is not None
    left = made.changes["expanded-copies"].largest.items
    assert left.filter(left["device_ns"] == 450_000).height == 3
