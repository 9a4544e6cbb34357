"""FLOPs and bytes from shapes: each formula, and shapes that fit none."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.ops.flops import work_of_ops

FLOAT = '["float","float"]'
CONV = '["","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1"]'
TRANSPOSED = '["","","","[2, 2]","[1, 1]","[1, 1]","True","[1, 1]","1"]'
BACKWARD = '["","","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1","[True, True, False]"]'


def work(
    name: str, shapes: str | None, dtypes: str | None = FLOAT, inputs: str | None = None
) -> tuple[int | None, int | None]:
    """FLOPs and bytes of one call."""
    call = {"name": f"aten::{name}", "shapes": shapes, "dtypes": dtypes, "concrete_inputs": inputs}
    frame = pl.DataFrame([call], schema=dict.fromkeys(call, pl.String))
    flops, size = work_of_ops(frame)
    return flops[0], size[0]


@pytest.mark.parametrize(
    ("name", "shapes", "flops", "output"),
    [
        ("mm", "[[2,3],[3,5]]", 2 * 2 * 3 * 5, 10),
        ("bmm", "[[7,2,3],[7,3,5]]", 7 * 2 * 2 * 3 * 5, 70),
        ("add", "[[4,1],[1,6]]", 24, 24),
        ("relu", "[[4,6]]", 24, 24),
        ("sum", "[[4,6]]", 24, 1),
    ],
)
def test_products_and_elements(name: str, shapes: str, flops: int, output: int) -> None:
    """Bytes: what is read, and the output, in the format of the first input."""
    read = {"mm": 6 + 15, "bmm": 42 + 105, "add": 4 + 6, "relu": 24, "sum": 24}[name]
    assert work(name, shapes) == (flops, 4 * (read + output))


def test_the_bias_comes_first() -> None:
    three = '["float","float","float"]'
    assert work("addmm", "[[5],[2,3],[3,5]]", three)[0] == 2 * 2 * 3 * 5
    assert work("baddbmm", "[[7,2,5],[7,2,3],[7,3,5]]", three)[0] == 7 * 2 * 2 * 3 * 5


def test_convolution() -> None:
    """16 pictures of 3 channels, 32 by 32, to 8 channels with stride 2 and padding 1."""
    outputs = 16 * 8 * 16 * 16
    assert work("convolution", "[[16,3,32,32],[8,3,3,3],[]]", inputs=CONV)[0] == 2 * outputs * 3 * 9
    grouped = work("convolution", "[[16,4,32,32],[8,2,3,3],[]]", inputs=CONV)[0]
    assert grouped == 2 * outputs * 2 * 9  # the weight has its share of the channels


def test_transposed_convolution() -> None:
    """Every input element meets the whole kernel."""
    assert work("convolution", "[[1,8,4,4],[8,3,3,3],[]]", inputs=TRANSPOSED)[0] == 2 * 8 * 16 * 3 * 9


def test_convolution_backward() -> None:
    """Once for each gradient that is asked for."""
    grad = 16 * 8 * 16 * 16
    shapes = "[[16,8,16,16],[16,3,32,32],[8,3,3,3]]"
    once = 2 * grad * 3 * 9
    assert work("convolution_backward", shapes, inputs=BACKWARD)[0] == 2 * once
    assert work("convolution_backward", shapes, inputs=BACKWARD.replace("[True", "[False"))[0] == once


def test_attention() -> None:
    shapes = "[[2,4,10,8],[2,4,20,8],[2,4,20,8]]"
    assert work("_scaled_dot_product_flash_attention", shapes)[0] == 4 * 2 * 4 * 10 * 20 * 8
    backward = "[[2,4,10,8],[2,4,10,8],[2,4,20,8],[2,4,20,8]]"
    assert work("_scaled_dot_product_flash_attention_backward", backward)[0] == 10 * 2 * 4 * 10 * 20 * 8


@pytest.mark.parametrize(
    ("name", "shapes", "inputs"),
    [
        ("mm", None, None),  # not recorded
        ("mm", "[[2,3],[4,5]]", None),  # do not fit
        ("mm", "[[2,3]]", None),
        ("mm", "[[2,-3],[-3,5]]", None),
        ("mm", '["a",[3,5]]', None),
        ("mm", "{not json", None),
        ("mm", "7", None),
        ("mm", f"[[{2**40},{2**20}],[{2**20},2]]", None),  # more than anything computes
        ("convolution", "[[16,3,32,32],[8,3,3,3]]", None),  # stride and padding are not known
        (
            "convolution",
            "[[16,3,32,32],[8,3,3,3]]",
            '["","","","[0, 0]","[1, 1]","[1, 1]","False","[0, 0]","1"]',
        ),
        ("my_op", "[[2,3]]", None),  # no formula
    ],
)
def test_not_sure(name: str, shapes: str | None, inputs: str | None) -> None:
    """Null rather than a guess, and never an error."""
    assert work(name, shapes, FLOAT, inputs) == (None, None)


def test_unknown_types_have_no_bytes() -> None:
    assert work("mm", "[[2,3],[3,5]]", '["thing","thing"]') == (60, None)
    assert work("mm", "[[2,3],[3,5]]", None) == (60, None)
    assert work("mm", "[[2,3],[3,5]]", '["c10::BFloat16","c10::BFloat16"]') == (60, 2 * (6 + 15 + 10))
