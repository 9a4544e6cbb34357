"""What a call of a module or a function is given, and whether other ops may have made or changed that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from stepscope.analysis.repeats.kinds import ARITHMETIC, COMBINING, CUTS, SEVERAL, VIEWS
from stepscope.analysis.repeats.op_call import INTEGERS, NUMBERS, Op, OpCall, Tensor
from stepscope.analysis.repeats.results import WEIGHTS, is_random
from stepscope.lazy import dataclass

_FINDS_PLACES = frozenset(("argmax", "argmin", "nonzero", "multinomial", "max", "min", "unique", "_unique2"))


@dataclass(frozen=True)
class Needs:
    """Elements of the arrays that a call is given: integers, and other numbers, of which `widest` has the most axes.

    `made`: elements of all arrays that are computed in it; `inner`: of those that it computes with. `results`: of those that its
    last op returns.
    """

    integers: frozenset[int]
    numbers: frozenset[int]
    widest: int
    made: frozenset[int]
    inner: frozenset[int]
    results: frozenset[int]

    @property
    def sizes(self) -> frozenset[int]:
        """Of all that it is given."""
        return self.integers | self.numbers

    @property
    def may_be_own(self) -> bool:
        """Whether a call may be given what the one before has returned, as in a loop that keeps a state."""
        return not self.made.isdisjoint(self.numbers) or not self.results.isdisjoint(self.sizes)


def needs_of(calls: Sequence[OpCall], has_own_weights: bool, or_random: bool = False) -> Needs | None:
    """Of the ops that a module or function calls, in their order; None where each call returns something else, or is not understood.

    Weights of ops are what it is given, unless they are its own.
    """
    if not calls or (not or_random and any(is_random(call.op) for call in calls)):
        return None
    known, made, inner = set[int](), set[int](), set[int]()
    integers, numbers = set[int](), set[int]()
    widest, results = 0, frozenset[int]()
    for call in calls:
        for each in _inputs(call.op, has_own_weights):
            if each.size in known or not each.shape or not each.size:
                inner |= {each.size} if each.shape and not is_view(call) else set()
                continue
            integers |= {each.size} if each.kind != NUMBERS else set()
            numbers |= {each.size} if each.kind != INTEGERS else set()
            widest = max(widest, len(each.shape) if each.kind != INTEGERS else 0)
        results = call.sizes or results
        known |= call.sizes or set()
        made |= set() if is_view(call) else call.sizes or set()
    if not results:
        return None
    return Needs(frozenset(integers), frozenset(numbers), widest, frozenset(made), frozenset(inner), results)


def has_unknown_numbers(calls: Sequence[OpCall], own: int | None) -> bool:
    """Whether a call computes with a number that may be another each time, as a time or a rate: its value was not recorded.

    It is an array without axes that no op of the call may have made, or in the code of the call itself, which runs in the module
    `own`, a number of Python: those of the modules inside are their constants.
    """
    made = False
    for call in calls:
        for each in call.op.tensors:
            is_known = bool(each.shape) or each.kind is None or bool(call.op.number_at(each.place))
            if not is_known and (call.home == own if each.of_python else not made):
                return True
        made = made or 1 in (call.sizes or ())
    return False


def _inputs(op: Op, has_own_weights: bool) -> Iterable[Tensor]:
    weights = WEIGHTS.get(op.base, ()) if has_own_weights else ()
    return (each for each in op.tensors if each.place not in weights)


def may_change(needs: Needs, others: Sequence[OpCall]) -> bool:
    """Whether any of these ops may have made what the call is given, or writes into that."""
    return any(_makes(call, needs) for call in others) or _writes_into_parts(needs.sizes, others)


def is_overwritten(needs: Needs, others: Sequence[OpCall]) -> bool:
    """Whether any of these ops may write into what a call has returned: then each needs one of its own."""
    return any(_writes(call, needs.results) for call in others) or _writes_into_parts(needs.results, others)


def _writes(call: OpCall, sizes: Collection[int]) -> bool:
    return call.op.is_in_place and any(size in sizes for size in call.sizes or ())


def _writes_into_parts(sizes: Collection[int], others: Sequence[OpCall]) -> bool:
    """Whether a part of so large an array is cut out, and something as large as that part is written to."""
    parts = [
        call.sizes
        for call in others
        if call.op.base in CUTS and call.sizes and call.op.tensors and call.op.tensors[0].size in sizes
    ]
    cut = frozenset[int]().union(*parts)
    return bool(cut) and any(_writes(call, cut) for call in others)


def _makes(call: OpCall, needs: Needs) -> bool:
    """Whether a result may be what is needed; of one that is not known its inputs say how large it may be."""
    op = call.op
    if needs.integers and call.counts:
        if call.sizes is None or op.base in _FINDS_PLACES:
            if any(each.size % size == 0 for each in op.tensors if each.size for size in needs.integers):
                return True
        elif not call.sizes.isdisjoint(needs.integers):
            return True
    if call.sizes is None:
        return any(each.size in needs.numbers for each in op.tensors)
    return not call.sizes.isdisjoint(needs.numbers)


def sources(needs: Needs, others: Iterable[OpCall], arrivals: Collection[int]) -> int:
    """How many different arrays the call may have been given: the most that any of them may be, 0 where none was made.

    Casts, and arithmetic with numbers and smaller arrays, go on with the array that they are given; what arrives from the host,
    is drawn at random, or picked or cut from a larger array, is another.
    """
    count = dict.fromkeys(needs.sizes, 0)
    for call in others:
        if not _makes(call, needs):
            continue
        for size in needs.sizes & (call.sizes or frozenset(each.size for each in call.op.tensors)):
            is_another = call.event in arrivals or not _goes_on(call.op, size)
            count[size] += is_another + (call.op.base in SEVERAL)
    return max(count.values(), default=0)


def _goes_on(op: Op, size: int) -> bool:
    given = [each for each in op.tensors if each.size == size]
    return len(given) == 1 and (op.base in VIEWS or op.base in ARITHMETIC)


def is_view(call: OpCall) -> bool:
    """Whether it only shows another array, or a part of it, and computes nothing."""
    return call.op.base in VIEWS or call.op.base in CUTS


def may_be_state(needs: Needs, others: Sequence[OpCall], around: int | None) -> bool:
    """Whether a call may be given a state beside what is known of, as large as an array that it computes with, or nothing uses what it returns.

    A state is made by ops that the loop calls itself, or is what another module returns at last. `around`: the module of the loop.
    """
    used = any(each.size in needs.results for call in others for each in call.op.tensors)
    following = [call.home for call in others[1:]] + [around]
    ends = (
        call
        for call, after in zip(others, following, strict=False)
        if call.home == around or (call.home != after and after == around)
    )
    returned = frozenset[int]().union(*(call.sizes or frozenset() for call in ends if not is_view(call)))
    return not used or not (returned - {0, 1}).isdisjoint(needs.inner)


def keeps_state(calls: Iterable[OpCall]) -> bool:
    """Whether two arrays of equal size are combined, as a loop does with its state and what a model makes of it."""
    return any(_combines(call.op) for call in calls)


def _combines(op: Op) -> bool:
    sizes = [each.size for each in op.tensors if each.size > 1]
    return op.base in COMBINING and len(sizes) > len(set(sizes))
