"""Weights that a compiled program multiplies several times."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.shared_weights import SharedWeights, shared_weights
from tests.builders.hlo import program

X, W = "f32[4,64]", "f32[64,64]"
CASTS = f"casts:\n  a = bf16[64,64] parameter(0)\n  b = {W} convert(a)\n"
LAYERS = "f32[6,64,64]"
CARRIED = f"(s32[], {X}, {LAYERS}, {LAYERS}, {LAYERS})"
BODY = f"""
takes:
  all = {LAYERS} parameter(0)
  at = s32[] parameter(1)
  zero = s32[] constant(0)
  one = f32[1,64,64] dynamic-slice(all, at, zero, zero)
  weight = {W} bitcast(one)
body:
  p = {CARRIED} parameter(0)
  at = s32[] get-tuple-element(p) index=0
  h.0 = {X} get-tuple-element(p) index=1
  all.1 = {LAYERS} get-tuple-element(p) index=2
  all.2 = {LAYERS} get-tuple-element(p) index=3
  all.3 = {LAYERS} get-tuple-element(p) index=4
  w.1 = {W} fusion(all.1, at) calls=takes
  w.2 = {W} fusion(all.2, at) calls=takes
  w.3 = {W} fusion(all.3, at) calls=takes
  h.1 = {X} dot(h.0, w.1) contracts=1,0
  h.2 = {X} dot(h.1, w.2) contracts=1,0
  h.3 = {X} dot(h.2, w.3) contracts=1,0
  one = s32[] constant(1)
  next = s32[] add(at, one)
  root = {CARRIED} tuple(next, h.3, all.1, all.2, all.3)
"""


def of_text(text: str) -> SharedWeights:
    return shared_weights(Module(program(text)))


def of_passes(*inputs: str, weights: int = 3, shape: str = X) -> SharedWeights:
    """Of a program that sends each of these through all weights; an input is a parameter, or the result of a pass (y.0, …)."""
    lines = [f"  w.{number} = bf16[64,64] parameter({number})" for number in range(weights)]
    lines += [f"  c.{number} = {W} fusion(w.{number}) calls=casts" for number in range(weights)]
    lines += [
        f"  {name} = {X} parameter({weights + place})"
        for place, name in enumerate(dict.fromkeys(inputs))
        if name.startswith("x")
    ]
    for number, name in enumerate(inputs):
        last, size = name, shape if number else X
        if size != X:
            lines.append(f"  part.{number} = {size} slice({name})")
            last = f"part.{number}"
        for layer in range(weights):
            lines.append(f"  d.{number}.{layer} = {size} dot({last}, c.{layer}) contracts=1,0")
            lines.append(f"  t.{number}.{layer} = {size} tanh(d.{number}.{layer})")
            last = f"t.{number}.{layer}"
        lines.append(f"  y.{number} = {size} copy({last})")
    return of_text(CASTS + "main:\n" + "\n".join(lines) + "\n")


def test_passes_that_do_not_need_one_another() -> None:
    found = of_passes("x.0", "x.1")
    assert (found.times, found.weights) == (2, 3)
    assert found.kernels == {("dot", "[[4,64],[64,64]]")}
    (one,) = found.products.values()
    assert (one.flops, one.weight_bytes, one.other_bytes) == (2 * 4 * 64 * 64, 64 * 64 * 4, 2 * 4 * 64 * 4)
    assert of_passes("x.0", "x.0", "x.1", "x.1", "x.1").times == 5


@pytest.mark.parametrize(
    "inputs",
    [
        ("x.0",),
        ("x.0", "y.0"),  # layers that share weights, a recurrent network, a sampler
        ("x.0", "x.1", "y.1"),
    ],
)
def test_passes_that_need_one_another_or_are_alone(inputs: tuple[str, ...]) -> None:
    assert of_passes(*inputs).times == 1


def test_a_layer_that_two_parts_share_is_no_model() -> None:
    assert of_passes("x.0", "x.1", weights=2).times == 1


def test_inputs_of_another_shape_are_not_stacked() -> None:
    assert of_passes("x.0", "x.1", shape="f32[2,64]").times == 1


def test_products_of_one_input_with_many_weights_are_no_passes() -> None:
    """The heads of a model, or queries, keys and values."""
    lines = [f"  w.{number} = {W} parameter({number + 1})" for number in range(6)]
    lines += [f"  d.{number} = {X} dot(x, w.{number}) contracts=1,0" for number in range(6)]
    assert of_text(f"main:\n  x = {X} parameter(0)\n" + "\n".join(lines)).times == 1


@pytest.mark.parametrize(("second", "times"), [("given.2", 2), ("given.1", 1)])
def test_loops_over_layers(second: str, times: int) -> None:
    """Two loops with the same weights, of which the second begins with an input of its own, or with the result of the first."""
    main = f"""
main:
  x.1 = {X} parameter(0)
  x.2 = {X} parameter(1)
  a = {LAYERS} parameter(2)
  b = {LAYERS} parameter(3)
  c = {LAYERS} parameter(4)
  zero = s32[] constant(0)
  in.1 = {CARRIED} tuple(zero, x.1, a, b, c)
  loop.1 = {CARRIED} while(in.1) calls=body trips=6
  given.1 = {X} get-tuple-element(loop.1) index=1
  given.2 = {X} tanh(x.2)
  in.2 = {CARRIED} tuple(zero, {second}, a, b, c)
  loop.2 = {CARRIED} while(in.2) calls=body trips=6
  given.3 = {X} get-tuple-element(loop.2) index=1
  both = ({X}, {X}) tuple(given.1, given.3)
"""
    found = of_text(BODY + main)
    assert (found.times, found.weights) == (times, 3)


def test_weights_of_a_layer_that_are_copied_beside_other_work() -> None:
    """On GPUs, XLA takes the weights of the layer with computations that it starts and waits for."""
    beside = f"beside:\n  all = {LAYERS} parameter(0)\n  at = s32[] parameter(1)\n  w = {W} fusion(all, at) calls=takes\n"
    body = BODY
    for layer in (1, 2, 3):
        body = body.replace(
            f"  w.{layer} = {W} fusion(all.{layer}, at) calls=takes\n",
            f"  s.{layer} = ({LAYERS}, {W}, u32[]) async-start(all.{layer}, at) calls=beside\n"
            f"  w.{layer} = {W} async-done(s.{layer})\n",
        )
    takes, body = body.split("body:\n")
    main = f"main:\n  a = {CARRIED} parameter(0)\n  loop = {CARRIED} while(a) calls=body trips=6\n"
    found = of_text(takes + beside + "body:\n" + body + main)
    assert (found.times, found.weights) == (1, 3)
    assert [one.weight_bytes for one in found.products.values()] == [64 * 64 * 4]
    assert found.loads == {("s", "[[6,64,64],[]]")}


VECTOR = "f32[64]"
SUMS = f"""
adds:
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
sums:
  x = {VECTOR} parameter(0)
  w = bf16[64,64] parameter(1)
  zero = f32[] constant(0)
  wide = {W} convert(w)
  spread = {W} broadcast(FACTOR)
  scaled = {W} multiply(spread, wide)
  sum = {VECTOR} reduce(scaled, zero) calls=REDUCES
"""


@pytest.mark.parametrize(
    ("factor", "reduces", "weights"),
    [("x", "adds", 3), ("zero", "adds", 0), ("x", "most", 0)],  # with a vector, a mean, and a maximum
)
def test_a_product_with_a_vector_is_a_sum(factor: str, reduces: str, weights: int) -> None:
    """As XLA writes the products of a batch of one."""
    most = "most:\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = f32[] maximum(a, b)\n"
    lines = [f"  h.0 = {VECTOR} parameter(0)"]
    for layer in (1, 2, 3):
        lines.append(f"  w.{layer} = bf16[64,64] parameter({layer})")
        lines.append(f"  h.{layer} = {VECTOR} fusion(h.{layer - 1}, w.{layer}) calls=sums")
    text = SUMS.replace("FACTOR", factor).replace("REDUCES", reduces)
    found = of_text(most + text + "main:\n" + "\n".join(lines) + "\n")
    assert found.weights == weights
    for one in found.products.values():
        assert one.is_sum
        assert (one.flops, one.weight_bytes, one.bits) == (2 * 64 * 64, 64 * 64 * 2, 16)  # as they are read
        assert one.other_bytes == 2 * 64 * 4


def test_what_only_takes_weights_is_told_from_what_takes_inputs() -> None:
    found = of_passes("x.0")
    assert found.loads == {("c", "[[64,64]]")}


@pytest.mark.parametrize(
    ("taken", "times"),
    [
        ("slice(all) slices={place}:{end},0:64,0:64", 1),  # experts: each has a part of its own
        ("slice(all) slices=0:1,0:64,0:64", 3),
        ("dynamic-slice(all, at.{place})", 1),  # experts that were chosen on the way
        ("dynamic-slice(all, at.0)", 3),
        ("dynamic-slice(all, sum)", 1),
    ],
)
def test_parts_of_one_array_are_weights_of_their_own(taken: str, times: int) -> None:
    lines = ["  at.0 = s32[] parameter(1)", "  at.1 = s32[] parameter(2)"]
    lines += ["  at.2 = s32[] parameter(3)", "  sum = s32[] add(at.0, at.1)"]
    for place in range(3):
        lines.append(f"  x.{place} = {X} parameter({4 + place})")
        lines.append(f"  h.{place}.0 = {X} tanh(x.{place})")
        for layer in range(3):
            lines.append(f"  o.{place}.{layer} = f32[6,64,64] parameter({7 + layer})")
            own = taken.replace("all", f"o.{place}.{layer}").format(place=place, end=place + 1)
            lines.append(f"  p.{place}.{layer} = f32[1,64,64] {own}")
            lines.append(f"  w.{place}.{layer} = {W} bitcast(p.{place}.{layer})")
            lines.append(
                f"  h.{place}.{layer + 1} = {X} dot(h.{place}.{layer}, w.{place}.{layer}) contracts=1,0"
            )
    assert of_text("main:\n" + "\n".join(lines) + "\n").times == times


def test_programs_that_are_damaged_or_call_themselves() -> None:
    assert shared_weights(Module(b"damaged")).times == 1
    casts = "".join(
        f"{one}:\n  a = {W} parameter(0)\n  b = {W} fusion(a) calls={other}\n  c = {W} copy(b)\n"
        for one, other in (("casts", "back"), ("back", "casts"))
    )
    main = (
        f"main:\n  w = {W} parameter(0)\n  c = {W} fusion(w) calls=casts\n  d = {W} dot(c, w) contracts=1,0\n"
    )
    assert of_text(casts + main).times == 1
    again = f"again:\n  x = {X} parameter(0)\n  y = {X} call(x) calls=again\n"
    assert of_text(f"{again}main:\n  a = {X} parameter(0)\n  b = {X} call(a) calls=again\n").times == 1
