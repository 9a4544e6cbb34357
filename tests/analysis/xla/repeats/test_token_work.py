"""Programs that compute all positions of a text for each new token."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.repeats.token_work import TokenWork, token_work, written_tokens
from tests.builders.hlo import program

# Two texts of 32 tokens, 4 heads of 8.
LAYER = """
  {first} = f32[64,32] gather(table, tokens)
  queries = f32[64,32] dot(x, weight)
  scores = f32[2,4,32,32] dot(queries, queries)
  rows = s32[32,32] iota()
  mask = pred[32,32] compare(rows, rows) direction={order}
  kept = f32[2,4,32,32] select(mask, scores, scores)
  values = f32[64,32] dot(kept, queries)
  logits = f32[64,500] dot(values, head)
  best = s32[2] reduce(logits)
"""
WRITE = "  new = s32[2,32] dynamic-update-slice(tokens, best, place)"
CODE = """
main:
  table = f32[500,32] parameter(0) op_name=params['table']
  weight = f32[32,32] parameter(1) op_name=params['w']
  head = f32[32,500] parameter(2) op_name=params['head']
  tokens = s32[2,32] parameter(3) op_name=tokens
  place = s32[] parameter(4) op_name=place
"""
LOOP = """
body:
  p = (s32[], s32[2,32], f32[500,32], f32[32,32], f32[32,500]) parameter(0)
  place = s32[] get-tuple-element(p) index=0
  tokens = s32[2,32] get-tuple-element(p) index=1
  table = f32[500,32] get-tuple-element(p) index=2
  weight = f32[32,32] get-tuple-element(p) index=3
  head = f32[32,500] get-tuple-element(p) index=4
"""
TURNED = """
  next = s32[] add(place, place)
  turned = (s32[], s32[2,32], f32[500,32], f32[32,32], f32[32,500]) tuple(next, new, table, weight, head)
main:
  zero = s32[] constant()
  table = f32[500,32] parameter(0)
  weight = f32[32,32] parameter(1)
  head = f32[32,500] parameter(2)
  tokens = s32[2,32] parameter(3)
  start = (s32[], s32[2,32], f32[500,32], f32[32,32], f32[32,500]) tuple(zero, tokens, table, weight, head)
  loop = (s32[], s32[2,32], f32[500,32], f32[32,32], f32[32,500]) while(start) calls=body trips=8
  made = s32[2,32] get-tuple-element(loop) index=1
"""


def layer(order: str = "GE") -> str:
    return LAYER.format(first="x", order=order)


def work_of(text: str) -> TokenWork | None:
    return token_work(read_module(program(text)))


def test_a_program_that_returns_the_tokens_with_one_more() -> None:
    found = work_of(CODE + layer() + WRITE)
    assert found is not None
    assert found.length == 32
    assert found.kept_bytes.keys() >= {"x", "queries", "scores", "kept", "values", "logits", "best"}
    # One position reads the weights, and the keys of all.
    assert found.kept_bytes["queries"] == 4 * 32 * 32
    assert found.kept_bytes["logits"] == 4 * 32 * 500
    assert found.kept_bytes["scores"] == 4 * 64 * 32
    assert found.kept_bytes["kept"] == 0


def test_a_loop_that_carries_the_tokens() -> None:
    found = work_of(LOOP + layer() + WRITE + TURNED)
    assert found is not None
    assert "logits" in found.kept_bytes


@pytest.mark.parametrize(
    "text",
    [
        CODE + layer(),  # scores texts, and writes no token
        CODE + layer("EQ") + WRITE,  # no causal mask: earlier positions depend on later ones
        CODE + layer().replace("[2,4,32,32]", "[2,4,1,32]").replace("[64,", "[2,") + WRITE,  # with a cache
        CODE + layer() + WRITE.replace("best", "tokens"),  # writes all tokens
        CODE.replace("[2,32] parameter(3)", "[2,8] parameter(3)")  # few tokens
        + layer().replace("32,32]", "8,8]")
        + WRITE.replace("[2,32]", "[2,8]"),
    ],
    ids=["scores", "not causal", "cached", "all tokens", "short"],
)
def test_what_looks_alike_is_no_generation(text: str) -> None:
    assert work_of(text) is None


def test_a_loop_with_a_cache_behind_a_padded_prompt() -> None:
    cached = layer().replace("[2,4,32,32]", "[2,4,1,32]").replace("[64,", "[2,")
    assert work_of(LOOP + cached + WRITE + TURNED + layer("GE")) is None


def test_the_layers_may_be_turns_of_a_loop() -> None:
    state = "(s32[], f32[64,32], f32[32,32])"
    inner = f"""
over:
  q = {state} parameter(0)
  at = s32[] get-tuple-element(q) index=0
  y = f32[64,32] get-tuple-element(q) index=1
  square = f32[32,32] get-tuple-element(q) index=2
  made = f32[64,32] dot(y, square)
  table = f32[2,4,32,32] dot(made, made)
  after = s32[] add(at, at)
  again = {state} tuple(after, made, square)
"""
    looped = f"""
  begin = {state} tuple(place, x, weight)
  layers = {state} while(begin) calls=over trips=4
  values = f32[64,32] get-tuple-element(layers) index=1
  rows = s32[32,32] iota()
  mask = pred[32,32] compare(rows, rows) direction=LE
  logits = f32[64,500] dot(values, head)
  best = s32[2] reduce(logits)
"""
    found = work_of(inner + CODE + "  x = f32[64,32] gather(table, tokens)" + looped + WRITE)
    assert found is not None
    assert found.kept_bytes.keys() == {"x", "made", "table", "logits", "best", "new"}
    assert found.kept_bytes["made"] == 4 * 32 * 32


def test_the_tokens_may_be_written_by_another_program() -> None:
    writes = "main:\n  tokens = s32[2,32] parameter(0)\n  best = s32[2] parameter(1)\n  place = s32[] parameter(2)\n"
    elsewhere = written_tokens(read_module(program(writes + WRITE)))
    assert [shape.sizes for shape in elsewhere] == [(2, 32)]
    module = read_module(program(CODE + layer()))
    assert token_work(module, elsewhere) is not None
    assert written_tokens(module) == []
