"""Weights that a training program returns as it was given them, though it computes their gradients."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.frozen_weights import FrozenWork, frozen_weights
from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.needs import Needs
from tests.builders.hlo import program

CODE = """
sum:
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
main:
  w = f32[8,8] parameter(0) op_name=params['encoder']['w']
  h = f32[8,8] parameter(1) op_name=params['head']['w']
  m = f32[8,8] parameter(2) op_name=opt['m']['encoder']['w']
  n = f32[8,8] parameter(3) op_name=opt['m']['head']['w']
  rate = f32[] parameter(4) op_name=lrs['encoder']
  other = f32[] parameter(5) op_name=lrs['head']
  x = f32[4,8] parameter(6) op_name=x
  zero = f32[] constant() value=0
  one = f32[] constant() value=1
  features = f32[4,8] dot(x, w)
  out = f32[4,8] dot(features, h)
  back = f32[4,8] dot(out, h)
  of_body = f32[8,8] dot(x, back)
  masked = f32[8,8] broadcast({mask})
  kept = f32[8,8] multiply(of_body, masked)
  of_head = f32[8,8] dot(features, out)
  state = f32[8,8] add(m, kept)
  head_state = f32[8,8] add(n, of_head)
  wide = f32[8,8] broadcast({scale})
  narrow = f32[8,8] broadcast({head_scale})
  change = f32[8,8] multiply(wide, state)
  head_change = f32[8,8] multiply(narrow, head_state)
  updated = f32[8,8] subtract(w, change)
  head = f32[8,8] subtract(h, head_change)
  loss = f32[] reduce(out, zero) calls=sum
  done = (f32[8,8], f32[8,8], f32[8,8], f32[8,8], f32[]) tuple({weight}, {head}, state, head_state, loss)
"""
BODY = {"back", "of_body", "state", "change", "updated"}


def found_in(
    *zeros: str,
    scale: str = "rate",
    head_scale: str = "other",
    mask: str = "one",
    weight: str = "updated",
    head: str = "head",
) -> FrozenWork | None:
    code = CODE.format(scale=scale, head_scale=head_scale, mask=mask, weight=weight, head=head)
    return frozen_weights(Module(program(code)), frozenset(zeros))


def test_an_update_that_is_multiplied_by_zero() -> None:
    found = found_in(scale="zero")
    assert found is not None
    assert found.names >= BODY
    assert not found.names & {"features", "out", "of_head", "head_state", "head_change", "head", "loss"}
    assert (found.weights, found.scale) == (("params['encoder']['w']",), "")


def test_a_learning_rate_that_the_job_holds_as_zero() -> None:
    found = found_in("encoder")
    assert found is not None
    assert found.names >= BODY
    assert found.scale == "lrs['encoder']"


def test_an_update_that_is_dropped_behind_the_optimizer() -> None:
    """The state goes on from step to step, and no weight depends on it."""
    found = found_in(weight="w")
    assert found is not None
    assert {"back", "of_body", "state"} <= found.names
    assert "head_state" not in found.names
    assert found.weights == ("params['encoder']['w']",)


def test_gradients_that_are_multiplied_by_zero() -> None:
    found = found_in(mask="zero")
    assert found is not None
    assert {"back", "of_body", "kept"} <= found.names
    assert "state" not in found.names
    assert found.weights == ()


@pytest.mark.parametrize(
    ("zeros", "settings"),
    [
        ((), {}),  # each part has its learning rate
        (("decoder", "x"), {}),  # zeros of something else
        ((), {"scale": "one", "head_scale": "one"}),
        ((), {"weight": "w", "head": "h"}),  # sums up gradients: another program updates the weights
        ((), {"scale": "zero", "head_scale": "zero"}),  # nothing is trained: a rehearsal
    ],
    ids=str,
)
def test_weights_that_are_trained_or_of_which_nothing_is_known(
    zeros: tuple[str, ...], settings: dict[str, str]
) -> None:
    found = found_in(*zeros, **settings)
    assert found is None or (not found.weights and "of_body" not in found.names)


LOOP = """
more:
  q = (f32[8], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(q) index=2
  limit = s32[] constant() value=1
  go = pred[] compare(i, limit) direction=LT
turn:
  p = (f32[8], f32[8], s32[]) parameter(0)
  first = f32[8] get-tuple-element(p) index=0
  second = f32[8] get-tuple-element(p) index=1
  at = s32[] get-tuple-element(p) index=2
  layer = f32[8] tanh(first)
  saved = f32[8] add(second, first)
  root = (f32[8], f32[8], s32[]) tuple(layer, saved, at)
main:
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  count = s32[] parameter(2)
  start = (f32[8], f32[8], s32[]) tuple(a, b, count)
  loop = (f32[8], f32[8], s32[]) while(start) calls=turn
  x = f32[8] get-tuple-element(loop) index=0
  y = f32[8] get-tuple-element(loop) index=1
  done = (f32[8], f32[8]) tuple(x, y)
"""


def test_a_loop_is_needed_part_by_part() -> None:
    """What is saved for a backward pass goes with it."""
    module = Module(program(LOOP))
    needs = Needs(module, None)
    assert needs.want([0]) == {0}
    names = {one.name for place in needs.live if (one := needs.instruction(*place)) is not None}
    assert "layer" in names and "saved" not in names
    assert needs.want([0, 1]) == {0, 1}
