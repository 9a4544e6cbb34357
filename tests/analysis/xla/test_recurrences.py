"""Loops of compiled programs that compute a linear recurrence."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.recurrences import Recurrence, recurrences_of
from tests.builders.hlo import program

# A counter, the state, a second state, inputs of all turns, outputs of all turns, a factor, the sum of a gradient.
CARRIED = "(s32[], f32[8], f32[8], f32[100,8], f32[100,8], f32[8], f32[8])"
FUSED = """
decays:
  old = f32[8] parameter(0)
  all = f32[100,8] parameter(1)
  turn = s32[] parameter(2)
  factor = f32[8] parameter(3)
  zero = s32[] constant(0)
  row = f32[1,8] dynamic-slice(all, turn, zero)
  input = f32[8] bitcast(row)
  scaled = f32[8] multiply(factor, old)
  new = f32[8] add(scaled, input)
writes:
  outputs = f32[100,8] parameter(0)
  value = f32[8] parameter(1)
  turn = s32[] parameter(2)
  zero = s32[] constant(0)
  bent = f32[8] tanh(value)
  row = f32[1,8] bitcast(bent)
  all = f32[100,8] dynamic-update-slice(outputs, row, turn, zero)
both:
  old = f32[8] parameter(0)
  factor = f32[8] parameter(1)
  outputs = f32[100,8] parameter(2)
  turn = s32[] parameter(3)
  zero = s32[] constant(0)
  new = f32[8] multiply(old, factor)
  row = f32[1,8] bitcast(new)
  all = f32[100,8] dynamic-update-slice(outputs, row, turn, zero)
  root = (f32[8], f32[100,8]) tuple(new, all)
"""
GIVEN = """
body:
  p = {carried} parameter(0)
  turn = s32[] get-tuple-element(p) index=0
  state = f32[8] get-tuple-element(p) index=1
  second = f32[8] get-tuple-element(p) index=2
  inputs = f32[100,8] get-tuple-element(p) index=3
  outputs = f32[100,8] get-tuple-element(p) index=4
  factor = f32[8] get-tuple-element(p) index=5
  sum = f32[8] get-tuple-element(p) index=6
  one = s32[] constant(1)
  next = s32[] add(turn, one)
"""
DECAYS = "new = f32[8] fusion(state, inputs, turn, factor) calls=decays"
WRITES = "written = f32[100,8] fusion(outputs, new, turn) calls=writes"


def found_in(*turn: str, result: str, trips: str = "trips=100", more: str = "") -> list[Recurrence]:
    """In a loop whose turns do this and return that."""
    text = FUSED + more + GIVEN.format(carried=CARRIED) + "".join(f"  {line}\n" for line in turn)
    text += f"  root = {CARRIED} tuple({result})\n"
    text += f"main:\n  a = {CARRIED} parameter(0)\n  loop = {CARRIED} while(a) calls=body {trips}\n"
    return recurrences_of(Module(program(text)))


def test_a_decaying_sum_whose_states_are_written_out() -> None:
    (found,) = found_in(DECAYS, WRITES, result="next, new, second, inputs, written, factor, sum")
    assert found.state == {"new"}
    assert (found.bytes, found.trips) == (32, 100)
    assert found.names == {"new", "written", "next"}
    assert found.convolved == 32


def test_one_kernel_computes_the_state_and_writes_it() -> None:
    """A fusion with two results: the outputs that it is given do not reach the state."""
    (found,) = found_in(
        "pair = (f32[8], f32[100,8]) fusion(state, factor, outputs, turn) calls=both",
        "new = f32[8] get-tuple-element(pair) index=0",
        "written = f32[100,8] get-tuple-element(pair) index=1",
        result="next, new, second, inputs, written, factor, sum",
        trips="",
    )
    assert found.state == {"pair"}
    assert found.trips is None


def test_kernels_inside_a_graph_are_found() -> None:
    graph = (
        "graph:\n  old = f32[8] parameter(0)\n  all = f32[100,8] parameter(1)\n  turn = s32[] parameter(2)\n"
        "  factor = f32[8] parameter(3)\n  kernel.1 = f32[8] fusion(old, all, turn, factor) calls=decays\n"
        "  root = (f32[8]) tuple(kernel.1)\n"
    )
    (found,) = found_in(
        "ran = (f32[8]) call(state, inputs, turn, factor) calls=graph",
        "new = f32[8] get-tuple-element(ran) index=0",
        WRITES,
        result="next, new, second, inputs, written, factor, sum",
        more=graph,
    )
    assert found.state == {"kernel_1"}
    assert found.instructions == {"kernel.1", "written", "next"}


def test_what_is_written_beside_other_work_is_followed() -> None:
    """On GPUs, XLA copies each row of the outputs with a computation that it starts and waits for."""
    beside = (
        "beside:\n  outputs = f32[100,8] parameter(0)\n  value = f32[8] parameter(1)\n  turn = s32[] parameter(2)\n"
        "  written.1 = f32[100,8] fusion(outputs, value, turn) calls=writes\n"
    )
    (found,) = found_in(
        DECAYS,
        "start = (f32[100,8], f32[100,8], u32[]) async-start(outputs, new, turn) calls=beside",
        "written = f32[100,8] async-done(start)",
        result="next, new, second, inputs, written, factor, sum",
        more=beside,
    )
    assert found.state == {"new"}
    assert found.names == {"new", "written_1", "next"}
    assert (found.bytes, found.convolved) == (32, 32)


LAYERED = "f32[4,100,8,2]"
STATES = f"""
keeps:
  all = {LAYERED} parameter(0)
  some = f32[100,8,2] parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  one = f32[1,100,8,2] bitcast(some)
  kept = {LAYERED} dynamic-update-slice(all, one, at, zero, zero, zero)
body:
  p = (s32[], f32[8,2], f32[100,8,2], f32[100,8], f32[FACTORS]) parameter(0)
  turn = s32[] get-tuple-element(p) index=0
  state = f32[8,2] get-tuple-element(p) index=1
  states = f32[100,8,2] get-tuple-element(p) index=2
  outputs = f32[100,8] get-tuple-element(p) index=3
  factors = f32[FACTORS] get-tuple-element(p) index=4
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(turn, one)
  factor = f32[8,2] TAKEN
  new = f32[8,2] multiply(state, factor)
  row = f32[100,8,2] dynamic-update-slice(states, new, turn, zero, zero)
  sum = f32[1,8] slice(new)
  written = f32[100,8] dynamic-update-slice(outputs, sum, turn, zero)
  root = (s32[], f32[8,2], f32[100,8,2], f32[100,8], f32[FACTORS]) tuple(next, new, row, written, factors)
main:
  a = (s32[], f32[8,2], f32[100,8,2], f32[100,8], f32[FACTORS]) parameter(0)
  layers = {LAYERED} parameter(1)
  at = s32[] parameter(2)
  loop = (s32[], f32[8,2], f32[100,8,2], f32[100,8], f32[FACTORS]) while(a) calls=body trips=100
  states = f32[100,8,2] get-tuple-element(loop) index=2
  kept.1 = {LAYERED} fusion(layers, states, at) calls=keeps
  turned = f32[2,4,100,8] transpose(kept.1)
  outputs = f32[100,8] get-tuple-element(loop) index=3
  wide = f32[100,16] copy(outputs)
  root = (f32[2,4,100,8], f32[100,16]) tuple(turned, wide)
"""


@pytest.mark.parametrize(
    ("factors", "taken", "held"),
    [
        ("8,2", "copy(factors)", {"kept.1", "turned"}),
        ("100,8,2", "dynamic-slice(factors, turn, zero, zero)", set()),  # a scan needs the states
    ],
)
def test_what_keeps_the_states_of_all_turns(factors: str, taken: str, held: set[str]) -> None:
    """For a backward pass, as those of the layers of a state-space model; a kernel of the outputs is another matter."""
    (found,) = recurrences_of(Module(program(STATES.replace("FACTORS", factors).replace("TAKEN", taken))))
    assert found.held - {"kept"} == held  # that is inside of a kernel
    assert found.convolved == (32 if held else None)


def test_a_state_that_is_bent_beside_other_work() -> None:
    beside = "beside:\n  value = f32[8] parameter(0)\n  bent = f32[8] tanh(value)\n"
    turn = (
        "start = (f32[8], f32[8], u32[]) async-start(state) calls=beside",
        "new = f32[8] async-done(start)",
    )
    assert not found_in(*turn, result="next, new, second, inputs, outputs, factor, sum", more=beside)


@pytest.mark.parametrize(
    "turn",
    [
        ("new = f32[8] add(state, factor)",),  # a cumulative sum
        ("new = f32[8] multiply(state, factor)",),
        ("less = f32[8] subtract(factor, state)", "new = f32[8] divide(less, factor)"),
        (  # begins anew where an episode ends
            "first = pred[] compare(turn, one) direction=EQ",
            "kept = f32[8] select(first, factor, state)",
            "new = f32[8] multiply(kept, factor)",
        ),
        (  # computed in another type, and in another shape
            "narrow = bf16[8] convert(state)",
            "other = bf16[2,4] reshape(narrow)",
            "twice = bf16[2,4] add(other, other)",
            "flat = bf16[8] bitcast(twice)",
            "new = f32[8] convert(flat)",
        ),
    ],
)
def test_recurrences(turn: tuple[str, ...]) -> None:
    assert found_in(*turn, WRITES, result="next, new, second, inputs, written, factor, sum")


@pytest.mark.parametrize(
    "turn",
    [
        ("new = f32[8] tanh(state)",),
        ("new = f32[8] multiply(state, state)",),
        ("new = f32[8] divide(factor, state)",),
        ("new = f32[8] maximum(state, factor)",),
        ("new = f32[8] dot(state, factor)",),
        ("new = f32[8] custom-call(state, factor, factor) target=__cublas$gemm",),
        ("new = f32[8] reverse(state)",),
        ("bits = s32[8] convert(state)", "new = f32[8] convert(bits)"),  # rounds
        (
            "small = pred[8] compare(state, factor) direction=LT",
            "new = f32[8] select(small, factor, state)",
        ),
        ("new = f32[8] while(state) calls=decays",),
    ],
)
def test_states_that_are_bent(turn: tuple[str, ...]) -> None:
    assert not found_in(*turn, WRITES, result="next, new, second, inputs, written, factor, sum")


def test_two_states_that_need_one_another() -> None:
    """Both parts of a complex number are; their product, or another state that is bent, is not."""
    result = "next, new, other, inputs, written, factor, sum"
    mixed = ("new = f32[8] add(state, second)", "other = f32[8] subtract(second, state)")
    (found,) = found_in(*mixed, WRITES, result=result)
    assert found.bytes == 64
    times = ("new = f32[8] multiply(state, second)", "other = f32[8] add(second, factor)")
    assert not found_in(*times, WRITES, result=result)
    bent = (DECAYS, "other = f32[8] tanh(second)", "sum.1 = f32[8] add(new, other)")
    assert not found_in(*bent, WRITES, result="next, sum.1, other, inputs, written, factor, sum")


def test_what_the_turn_before_was_given_is_no_state() -> None:
    """As the value of the next state in advantages: it may go through anything."""
    times = ("bent = f32[8] tanh(second)", "scaled = f32[8] multiply(state, bent)")
    new = "new = f32[8] add(scaled, factor)"
    (found,) = found_in(*times, new, WRITES, result="next, new, factor, inputs, written, factor, sum")
    assert found.bytes == 32


def test_a_factor_that_changes_with_the_turns_needs_all_states() -> None:
    """Whether it is counted or taken from what all turns are given."""
    result = "next, new, second, inputs, written, factor, sum"
    counted = ("wide = f32[8] broadcast(turn)", "new = f32[8] multiply(state, wide)")
    zero = "zero = s32[] constant(0)"
    taken = (zero, "row = f32[1,8] dynamic-slice(inputs, turn, zero)", "new = f32[8] multiply(state, row)")
    for turn in (counted, taken):
        (found,) = found_in(*turn, WRITES, result=result)
        assert found.convolved is None


def test_loops_that_only_fill_and_add_up_have_no_state() -> None:
    """No turn needs the one before: one sum after the loop would do."""
    turn = (
        "new = f32[8] tanh(factor)",
        "more = f32[8] add(sum, new)",
        "kept = f32[8] custom-call(inputs, inputs, second) target=__cublas$gemm",
    )
    assert not found_in(*turn, WRITES, result="next, state, kept, inputs, written, factor, more")
    decaying = "more = f32[8] multiply(sum, new)"
    assert found_in(turn[0], decaying, WRITES, result="next, state, second, inputs, written, factor, more")


def test_a_cache_that_turns_fill_and_read_has_no_state() -> None:
    turn = ("new = f32[8] tanh(outputs)", "zero = s32[] constant(0)", "row = f32[1,8] bitcast(factor)")
    filled = "filled = f32[100,8] dynamic-update-slice(outputs, row, turn, zero)"
    assert not found_in(*turn, filled, result="next, new, second, inputs, filled, factor, sum")


def test_the_gradient_of_a_loop_that_is_bent_stays_with_it() -> None:
    """It is linear, but where the forward pass has to go turn by turn nobody scans its gradient."""
    bent = GIVEN.format(carried=CARRIED).replace("body:", "forward:")
    bent += f"  new = f32[8] tanh(state)\n  {WRITES}\n"
    bent += f"  root = {CARRIED} tuple(next, new, second, inputs, written, factor, sum)\n"
    back = GIVEN.format(carried=CARRIED) + f"  {DECAYS}\n  {WRITES}\n"
    back += f"  root = {CARRIED} tuple(next, new, second, inputs, written, factor, sum)\n"
    main = f"main:\n  a = {CARRIED} parameter(0)\n  loop.1 = {CARRIED} while(a) calls=forward trips=100\n"
    for trips, count in (("100", 0), ("80", 1)):
        last = f"  loop.2 = {CARRIED} while(loop.1) calls=body trips={trips}\n"
        assert len(recurrences_of(Module(program(FUSED + bent + back + main + last)))) == count


def test_programs_that_are_damaged_or_call_themselves() -> None:
    assert not recurrences_of(Module(b"damaged"))
    again = "again:\n  x = f32[8] parameter(0)\n  y = f32[8] call(x) calls=again\n"
    assert not found_in(
        "new = f32[8] call(state) calls=again",
        WRITES,
        result="next, new, second, inputs, written, factor, sum",
        more=again,
    )
