"""Which ops work on the samples and positions of a counted batch."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.batches.positions import on_batch
from stepscope.analysis.lengths import CountedLengths

LENGTH, SAMPLES = 512, 8
TOKENS = SAMPLES * LENGTH
COUNTED = CountedLengths("torch", "mask", (SAMPLES, LENGTH), 3, 100.0, 160.0)
SPEECH = ("aten::convolution", f"[[{SAMPLES},1,{LENGTH},80],[32,1,3,3]]")
IMAGES = ("aten::convolution", f"[[{SAMPLES},64,{LENGTH},{LENGTH}],[64,64,3,3]]")
LINEAR = ("aten::linear", f"[[{SAMPLES},{LENGTH},4096],[4096,4096],[4096]]")


def is_on_batch(name: str, shapes: str, *others: tuple[str, str]) -> bool:
    """Of an op in steps with these others."""
    rows = [(0, name, shapes), *((place, *each) for place, each in enumerate(others, 1))]
    ops = pl.DataFrame(
        rows, schema={"event": pl.UInt32, "name": pl.String, "shapes": pl.String}, orient="row"
    )
    return 0 in on_batch(ops, COUNTED)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("aten::mm", f"[[{TOKENS},64],[64,256]]"),
        ("aten::mm", f"[[64,{TOKENS}],[{TOKENS},256]]"),
        ("aten::bmm", f"[[{SAMPLES * 12},{LENGTH},64],[{SAMPLES * 12},64,{LENGTH}]]"),
        ("aten::add", f"[[{SAMPLES * 12},{LENGTH},{LENGTH}],[]]"),
        ("aten::gelu", f"[[{SAMPLES},{LENGTH},1024]]"),
        ("aten::mul", f"[[{SAMPLES},12,{LENGTH},{LENGTH}],[]]"),
        ("aten::_cudnn_rnn", f"[[{LENGTH},{SAMPLES},64],[[256,64],[256]]]"),
        ("aten::embedding", f"[[5000,64],[{SAMPLES},{LENGTH}]]"),
        ("aten::sum", f"[[{TOKENS},64]]"),
    ],
)
def test_a_tensor_with_samples_and_positions_is_of_the_batch(name: str, shapes: str) -> None:
    assert is_on_batch(name, shapes)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("aten::_to_copy", f"[[{LENGTH},{LENGTH}]]"),
        ("aten::add_", "[[32768,1024],[32768,1024]]"),
        ("aten::mm", f"[[{SAMPLES},{LENGTH}],[{LENGTH},1000]]"),
        ("aten::gelu", f"[[64,{LENGTH},1024]]"),
        ("aten::mul", f"[[{SAMPLES * 5},{LENGTH},1024],[]]"),
        ("aten::relu", f"[[{SAMPLES},64,128,128]]"),
        ("aten::add", f"[[{LENGTH},1024],[{LENGTH},1024]]"),
        ("aten::_foreach_add_", f"[[[{SAMPLES},{LENGTH}]],[]]"),
        ("aten::add", ""),
    ],
)
def test_sizes_that_only_look_like_those_of_the_batch_prove_nothing(name: str, shapes: str) -> None:
    """A layer as wide as the text is long, a vocabulary, a pooled batch, other samples, channels of images, positions without samples."""
    assert not is_on_batch(name, shapes)


def test_convolutions_shorten_positions() -> None:
    half = f"[[{SAMPLES},{LENGTH // 2},256]]"
    assert not is_on_batch("aten::gelu", half)
    assert is_on_batch("aten::gelu", half, SPEECH)


def test_images_and_weights_may_have_the_size_of_the_batch() -> None:
    image, weight = f"[[{SAMPLES},64,{LENGTH},{LENGTH}]]", "[[4096,4096],[4096,4096]]"
    assert is_on_batch("aten::relu", image) and not is_on_batch("aten::relu", image, IMAGES)
    assert is_on_batch("aten::add_", weight) and not is_on_batch("aten::add_", weight, LINEAR)
    assert is_on_batch("aten::mm", weight, LINEAR)
