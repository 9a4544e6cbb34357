"""Gradients of a whole tensor for each of its slices, as PyTorch 2.13 records them, on a device and on a CPU."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.useless.sliced_gradients import RULE
from stepscope.analysis.ops.sliced_gradients import sliced_gradients
from tests.analysis.findings.op_steps import Op
from tests.analysis.findings.op_steps import case as device_case
from tests.analysis.findings.rules.host_training import ENGINE, Call, case_of_calls

WHOLE = "[16,64,32]"
FILL, COPY, ADD = (
    f"void at::native::vectorized_elementwise_kernel<{name}>" for name in ("Fill", "Copy", "Add")
)


def selected(place: int, summed: bool = True, whole: str = WHOLE, us: int = 10) -> Call:
    """A node of autograd for `x[:, place]` on a CPU."""
    return _node("SelectBackward0", "select_backward", f'["","{whole}","1","{place}"]', whole, summed, us)


def cut(begin: int, end: int, step: int = 1, summed: bool = True) -> Call:
    """The same for `x[:, begin:end:step]`."""
    inputs = f'["","{WHOLE}","1","{begin}","{end}","{step}"]'
    return _node("SliceBackward0", "slice_backward", inputs, WHOLE, summed, 10)


def _node(name: str, op: str, inputs: str, whole: str, summed: bool, us: int) -> Call:
    fill = Call("aten::zeros", 1, inside=(Call("aten::zero_", us, f"[{whole}]"),))
    piece = Call("aten::copy_", 1, "[[16,32],[16,32],[]]")
    made = Call(f"aten::{op}", 1, "[[16,32],[],[],[]]", inputs, inside=(fill, piece))
    add = (Call("aten::add_", us, f"[{whole},{whole},[]]"),) * summed
    return Call(
        f"{ENGINE} {name}", 1, sequence="1", inside=(Call(name, 1, "[[16,32]]", inside=(made,)), *add)
    )


def of_one(*nodes: Call) -> tuple[Call, ...]:
    """Nodes of which the first has nothing to add its gradient to."""
    first = nodes[0]
    return (Call(first.name, first.own, sequence="1", inside=first.inside[:1]), *nodes[1:])


STEPS = of_one(*[selected(63 - number) for number in range(20)])


def test_time_steps_of_a_sequence_on_a_cpu() -> None:
    (found,) = RULE.findings(case_of_calls(*STEPS))
    assert found.evidence["slices"] == 20
    # All that fills and adds, 400 of 490 µs, goes; in place of the nodes comes one.
    assert found.share == pytest.approx(0.49, abs=0.02)
    assert 1.4 < found.speedup.low < 1 / (1 - 0.46) < found.speedup.high


def rows(*nodes: Call) -> list[tuple[object, ...]]:
    """The different rows of the nodes: slices, slices_least, piece, overlaps, again."""
    found = sliced_gradients(case_of_calls(*nodes, count=1).trace).drop("node")
    return sorted(set(found.iter_rows()))


MIXED = Call("aten::mul", 1, f"[{WHOLE},[32]]")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (STEPS, [(20, 20, 1 / 64, False, False)]),
        (STEPS[:8], [(8, 8, 1 / 64, False, False)]),
        # Each field is used by every other: four fields in twelve slices, at worst of three tensors.
        (
            of_one(*[selected(number % 4) for number in range(12)]),
            [(12, 4, 1 / 64, False, False), (12, 4, 1 / 64, False, True)],
        ),
        # Query, key and value of four layers, each cut from a tensor of its own.
        (
            (*of_one(selected(0), selected(1), selected(2)), MIXED) * 4,
            [(3, 3, 1 / 64, False, False)],
        ),
        (of_one(*[cut(8 * n, 8 * n + 8) for n in range(8)]), [(8, 8, 1 / 8, False, False)]),
        (of_one(*[cut(4 * n, 4 * n + 16) for n in range(8)]), [(8, 8, 1 / 4, True, False)]),
        (of_one(*[cut(n, 2**63 - 1, 8) for n in range(8)]), [(8, 8, 1 / 8, False, False)]),
        # Negative places count from the end, as Python's do.
        (of_one(*[selected(-1 - n) for n in range(8)]), [(8, 8, 1 / 64, False, False)]),
    ],
)
def test_slices_of_a_tensor(nodes: tuple[Call, ...], expected: list[tuple[object, ...]]) -> None:
    assert rows(*nodes) == expected


@pytest.mark.parametrize(
    "nodes",
    [
        STEPS[:7],
        # The first token of each layer's result.
        [selected(0)] * 12,
        # Nothing is added up: each slice has a tensor of its own.
        [selected(number, summed=False) for number in range(12)],
        # So it has if an op between two of them is given an array as large as the whole.
        [each for node in STEPS for each in (node, MIXED)],
        # Halves, as rotary embeddings take.
        [*of_one(cut(0, 32), cut(32, 64)), MIXED] * 6,
        # Growing prefixes, and windows at uneven distances.
        of_one(*[cut(0, 8 + n) for n in range(12)]),
        of_one(*[cut(n * n, n * n + 16) for n in range(7)], cut(47, 63)),
        # Three slices of one tensor and three of another size.
        [*of_one(*STEPS[1:5]), *of_one(*[selected(n, whole="[16,8,32]") for n in range(4)])],
    ],
)
def test_slices_that_are_few_or_of_many_tensors(nodes: list[Call]) -> None:
    assert rows(*nodes) == []


def test_slices_that_take_little() -> None:
    assert RULE.findings(case_of_calls(*of_one(*[selected(n, us=0) for n in range(8)]))) == []


def launched(place: int, summed: bool = True, us: int = 20) -> Op:
    """The same node on a device, whose thread is another."""
    inputs = f'["","{WHOLE}","1","{place}"]'
    fill = Op(
        "aten::zeros", track="autograd", inside=(Op("aten::fill_", f"[{WHOLE}]", FILL, us, "autograd"),)
    )
    piece = Op("aten::copy_", "[[16,32],[16,32],[]]", COPY, 2, "autograd")
    made = Op("aten::select_backward", "[[16,32]]", track="autograd", inputs=inputs, inside=(fill, piece))
    add = (Op("aten::add_", f"[{WHOLE},{WHOLE},[]]", ADD, us, "autograd"),) * summed
    return Op(
        f"{ENGINE} SelectBackward0",
        track="autograd",
        sequence="1",
        inside=(Op("SelectBackward0", track="autograd", inside=(made,)), *add),
    )


def test_time_steps_of_a_sequence_on_a_device() -> None:
    made = device_case(*[[launched(number, summed=number > 0) for number in range(16)]] * 3)
    (found,) = RULE.findings(made)
    names = {one["name"] for one in found.evidence["names"]}
    assert {FILL, ADD} <= names
    # 620 of 652 µs on the device only fill and add whole tensors.
    assert found.speedup.low > 2
    change = made.changes["sliced-gradients"]
    left = {
        name: sum(one) / 3
        for name, plan in (("most", change.smallest), ("least", change.largest))
        for one in [plan.items["device_ns"].drop_nulls()]
    }
    # At worst one tensor is still filled, and the pieces are copied.
    assert left["least"] < 10_000
    assert 20_000 < left["most"] < 60_000


def test_a_slice_that_is_taken_again_is_still_added() -> None:
    nodes = [launched(number % 4, summed=number > 0) for number in range(16)]
    once = [launched(number, summed=number > 0) for number in range(16)]
    (twice,), (each,) = (RULE.findings(device_case(*[of] * 3)) for of in (nodes, once))
    assert twice.speedup.low < each.speedup.low


def test_slices_of_tensors_of_their_own_on_a_device() -> None:
    assert RULE.findings(device_case(*[[launched(0) for _ in range(16)]] * 3)) == []
