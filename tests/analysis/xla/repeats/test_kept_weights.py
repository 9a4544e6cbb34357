"""Which arguments look like weights that stay the same."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.arguments import arguments_of
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.repeated_calls import Arrivals
from stepscope.analysis.xla.repeats.kept_weights import kept_weights
from tests.builders.hlo import program
from tests.builders.programs import program_trace

MODEL = ("f32[64,8] params['table']", "f32[8,8] params['layer']", "f32[16] params['bias']")


def kept_of(*arguments: str, result: str = "f32[5]") -> list[str]:
    """Names of the weights of a program with these arguments."""
    lines = [
        f"  a{place} = {shape} parameter({place}) op_name={name}"
        for place, (shape, name) in enumerate(each.split() for each in arguments)
    ]
    code = program("\n".join(["main:", *lines, f"  made = {result} negate(a0)"]))
    trace = program_trace(["stream 7  0  10  made  kernel  -  jit_f"], jit_f=code)
    arrivals = Arrivals(trace, {"jit_f": 1}, {"jit_f": {code}})
    return [one.name for one in kept_weights(arguments_of(read_module(code)), arrivals)]


def test_a_tree_of_arrays_of_several_lengths_is_a_model() -> None:
    assert kept_of(*MODEL, "s32[8,16] tokens") == ["params['table']", "params['layer']", "params['bias']"]


def test_what_a_program_returns_is_another_one_in_each_call() -> None:
    assert kept_of(*MODEL, result="f32[8,8]") == ["params['table']", "params['bias']"]


@pytest.mark.parametrize(
    "others",
    [
        ("f32[8,32] batch['image']", "f32[8,64] batch['text']", "f32[8] batch['score']"),  # one length
        ("f32[8,32] batch['x']", "f32[9,64] batch['y']", "s32[8] batch['label']"),  # whole numbers
        ("f32[8,32] batch['x']", "f32[9,64] batch['y']"),  # too few
        ("f32[8,32] x", "f32[9,64] y", "f32[10] z"),  # no tree
    ],
    ids=str,
)
def test_a_batch_that_lies_on_the_device_is_none(others: tuple[str, ...]) -> None:
    assert kept_of(*others) == []


def test_a_number_of_steps_is_no_label() -> None:
    assert len(kept_of(*MODEL, "s32[] params['step']")) == 3
