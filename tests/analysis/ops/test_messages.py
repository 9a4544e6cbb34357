"""Messages along edges, by the order of ops."""

from __future__ import annotations

from stepscope.analysis.ops.messages import Call, Messages, find_messages, may_have_messages

FLOATS = '["float", "float"]'


def gather(track: int, event: int) -> Call:
    return (track, event, "aten::index_select", "[[50, 8], [], [400]]", FLOATS)


def weigh(track: int, event: int) -> Call:
    return (track, event, "aten::mul", "[[400, 1], [400, 8]]", FLOATS)


def add(track: int, event: int) -> Call:
    return (track, event, "aten::index_add_", "[[50, 8], [], [400], [400, 8], []]", FLOATS)


def test_a_gather_its_weights_and_a_scatter() -> None:
    zeros: Call = (1, 3, "aten::zeros_like", "[[50, 8]]", FLOATS)
    assert find_messages([gather(1, 1), weigh(1, 2), zeros, add(1, 4)]) == [
        Messages((1, 2, 4), 400, 8, 50, "float")
    ]


def test_what_another_thread_does_is_not_of_them() -> None:
    assert find_messages([gather(1, 1), weigh(2, 2), add(2, 3)]) == []


def test_the_gradient_goes_the_other_way_round() -> None:
    """The gather's gradient writes into the table, at the places that it was read from."""
    back: Call = (2, 6, "aten::_index_put_impl_", "[[50, 8], [], [400, 8], [], []]", FLOATS)
    found = find_messages([gather(1, 1), weigh(1, 2), add(1, 3), gather(2, 4), weigh(2, 5), back])
    assert [each.ops for each in found] == [(1, 2, 3), (4, 5, 6)]


def test_damaged_shapes_are_no_messages() -> None:
    broken: Call = (1, 1, "aten::index", "damaged", FLOATS)
    assert find_messages([broken, weigh(1, 2), add(1, 3), (1, 4, "aten::index", None, None)]) == []


def test_names_that_can_be_messages() -> None:
    assert may_have_messages(["aten::mm", "aten::index_select", "aten::index_add_"])
    assert not may_have_messages(["aten::index_select", "aten::mul"])
    assert not may_have_messages(["aten::index_add_", "aten::mul"])
