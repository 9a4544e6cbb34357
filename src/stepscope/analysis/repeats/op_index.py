"""Which ops of a step make, show, cut or write to arrays of a size, by their places in the step.

A step has thousands of calls of modules and functions. What is asked for each of them is looked up here, so that no op is looked at again
for each call: the time grows with the ops.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from stepscope.analysis.repeats.closed import Needs, is_view
from stepscope.analysis.repeats.kinds import ARITHMETIC, COMBINING, CUTS, SEVERAL, VIEWS
from stepscope.analysis.repeats.op_call import Op, OpCall

_TURNS = frozenset(("transpose", "permute", "t", "movedim"))
_AS_IT_IS = (VIEWS | frozenset(("empty", "empty_like", "empty_strided"))) - _TURNS
_FINDS_PLACES = frozenset(("argmax", "argmin", "nonzero", "multinomial", "max", "min", "unique", "_unique2"))


class Places:
    """Places in a step, in order, and how much those before each one count."""

    def __init__(self) -> None:
        self._at: list[int] = []
        self._sums = [0]

    def add(self, place: int, weight: int = 0) -> None:
        """One more, behind all others."""
        if self._at and self._at[-1] == place:
            self._sums[-1] += weight
        else:
            self._at.append(place)
            self._sums.append(self._sums[-1] + weight)

    def any_in(self, begin: int, end: int) -> bool:
        """Whether there is one from `begin` on and before `end`."""
        at = bisect_left(self._at, begin)
        return at < len(self._at) and self._at[at] < end

    def sum_before(self, end: int) -> int:
        """What all before `end` count."""
        return self._sums[bisect_left(self._at, end)]


_BySize = defaultdict[int, Places]
_NOWHERE = Places()


class Makers:
    """The ops that may have made an array of a size; of a result that is not known the inputs say how large it may be."""

    def __init__(self) -> None:
        self._numbers: _BySize = defaultdict(Places)
        self._integers: _BySize = defaultdict(Places)
        # Those whose results hold places, and are as large as a part of what they look through: by its size.
        self._finders: _BySize = defaultdict(Places)
        self._multiples: dict[int, list[Places]] = {}

    def add(self, place: int, call: OpCall, arrivals: Collection[int]) -> None:
        """One more op, behind all others. How many arrays it is counts: see `sources`."""
        given = call.op.count_by_size
        for size in given if call.sizes is None else call.sizes:
            is_another = call.event in arrivals or not _goes_on(call.op, given[size])
            weight = is_another + (call.op.base in SEVERAL)
            self._numbers[size].add(place, weight)
            if call.counts:
                self._integers[size].add(place, weight)
        if call.counts and (call.sizes is None or call.op.base in _FINDS_PLACES):
            self._multiples.clear()
            for size in given:
                self._finders[size].add(place)

    def may_make(self, needs: Needs, begin: int, end: int) -> bool:
        """Whether any op between these places may have made what a call is given."""
        places = [self._numbers.get(size, _NOWHERE) for size in needs.numbers]
        for size in needs.integers:
            places += [self._integers.get(size, _NOWHERE), *self._found(size)]
        return any(each.any_in(begin, end) for each in places)

    def _found(self, size: int) -> list[Places]:
        if size not in self._multiples:
            self._multiples[size] = [
                found for of, found in self._finders.items() if of and size and of % size == 0
            ]
        return self._multiples[size]

    def sources(self, needs: Needs, end: int, without: Makers) -> int:
        """How many different arrays a call may have been given before a place: the most that any of them may be, 0 where none was made.

        Casts, and arithmetic with numbers and smaller arrays, go on with the array that they are given; what arrives from the host,
        is drawn at random, or picked or cut from a larger array, is another. `without`: ops that do not count, all of them before `end`.
        """
        counts = (
            self._of(size, needs).sum_before(end) - without._of(size, needs).sum_before(end)
            for size in needs.sizes
        )
        return max(counts, default=0)

    def _of(self, size: int, needs: Needs) -> Places:
        return (self._numbers if size in needs.numbers else self._integers).get(size, _NOWHERE)


def _goes_on(op: Op, given: int) -> bool:
    return given == 1 and (op.base in VIEWS or op.base in ARITHMETIC)


def count_new(call: OpCall, arrivals: Collection[int]) -> int:
    """How many arrays with numbers of their own an op makes: casts, copies and other shapes of an array hold the same numbers in the same order."""
    if call.event not in arrivals and (call.op.base in _AS_IT_IS or call.op.is_in_place):
        return 0
    return 1 + (call.op.base in SEVERAL)


class OpIndex:
    """Of the ops of a step, in their order. `makers` are all, `computing` those that compute something."""

    def __init__(self, calls: Sequence[OpCall], arrivals: Collection[int]) -> None:
        self._calls = calls
        self.makers, self.computing = Makers(), Makers()
        self._writes: _BySize = defaultdict(Places)
        self._given: _BySize = defaultdict(Places)
        self._parts: dict[int, _BySize] = defaultdict(lambda: defaultdict(Places))
        self._returned: defaultdict[tuple[int | None, int], Places] = defaultdict(Places)
        self._combining: defaultdict[int | None, Places] = defaultdict(Places)
        for place, call in enumerate(calls):
            self.makers.add(place, call, arrivals)
            if not is_view(call):
                self.computing.add(place, call, arrivals)
            self._add(place, call)

    def _add(self, place: int, call: OpCall) -> None:
        op, sizes = call.op, call.sizes or frozenset[int]()
        for size in op.count_by_size:
            self._given[size].add(place)
        if op.is_in_place:
            _add_each(self._writes, sizes, place)
        if op.base in CUTS and op.tensors:
            _add_each(self._parts[op.tensors[0].size], sizes, place)
        if op.base in COMBINING and any(count > 1 and size > 1 for size, count in op.count_by_size.items()):
            self._combining[call.home].add(place)
        if not is_view(call):
            after = self._calls[place + 1].home if place + 1 < len(self._calls) else call.home
            for home in {call.home, after}:
                for size in sizes:
                    self._returned[home, size].add(place)

    def may_change(self, needs: Needs, begin: int, end: int) -> bool:
        """Whether any of these ops may have made what the call is given, or writes into that."""
        return self.makers.may_make(needs, begin, end) or self._writes_into_parts(needs.sizes, begin, end)

    def is_overwritten(self, needs: Needs, begin: int) -> bool:
        """Whether any op from this place on may write into what a call has returned: then each needs one of its own."""
        end = len(self._calls)
        written = any(self._writes.get(size, _NOWHERE).any_in(begin, end) for size in needs.results)
        return written or self._writes_into_parts(needs.results, begin, end)

    def _writes_into_parts(self, sizes: Collection[int], begin: int, end: int) -> bool:
        """Whether a part of so large an array is cut out, and something as large as that part is written to."""
        return any(
            places.any_in(begin, end) and self._writes.get(part, _NOWHERE).any_in(begin, end)
            for size in sizes
            for part, places in self._parts.get(size, {}).items()
        )

    def may_be_state(self, needs: Needs, begin: int, end: int, around: int | None) -> bool:
        """Whether a call may be given a state beside what is known of, as large as an array that it computes with, or nothing uses what it returns.

        A state is made by ops that the loop calls itself, or is what another module returns at last. `around`: the module of the loop.
        """
        if not any(self._given.get(size, _NOWHERE).any_in(begin, end) for size in needs.results):
            return True
        wanted = needs.inner - {0, 1}
        last = self._calls[end - 1]
        if not is_view(last) and not wanted.isdisjoint(last.sizes or ()):
            return True
        return any(self._returned.get((around, size), _NOWHERE).any_in(begin, end - 1) for size in wanted)

    def keeps_state(self, begin: int, end: int, around: int | None) -> bool:
        """Whether the loop combines two arrays of equal size, as it does with its state and what a model makes of it."""
        return self._combining.get(around, _NOWHERE).any_in(begin, end)


def _add_each(known: _BySize, sizes: Iterable[int], place: int) -> None:
    for size in sizes:
        known[size].add(place)
