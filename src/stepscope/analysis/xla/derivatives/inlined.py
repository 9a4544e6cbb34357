"""A compiled program as one graph: fused kernels and calls are looked into, and each value leads to what uses it.

Every computation is entered once, from the first place that calls it. Loops are entered as well: what a turn is given comes from
before the loop or from the turn before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.loops import CALLS, WAITS, body_of, root_of
from stepscope.registers.policy.useless_work import CALLS_DEEPEST

Place = tuple[int, int]  # computation and number of an instruction
_ENTERED = ("fusion", *CALLS)


class Inlined:
    """`nodes` by place; `sources`, what each is computed from; `kernels`, the instruction of the program that each is a part of."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.nodes: dict[Place, Instruction] = {}
        self.sources: dict[Place, list[Place]] = {}
        self.kernels: dict[Place, Place] = {}
        self._given: dict[Place, Place] = {}  # what a parameter of a computation is
        self._states: dict[
            Place, tuple[Place, Place | None]
        ] = {}  # of a loop's body, and what a turn returns
        self._enter(module.entry, (), None, 0)
        for place in self.nodes:
            self.sources[place] = list(dict.fromkeys(self._sources_of(place)))

    @property
    def result(self) -> Place | None:
        """What the program returns."""
        return self._root(self.module.entry)

    def users(self) -> dict[Place, list[Place]]:
        """For each value what uses it."""
        found: dict[Place, list[Place]] = {place: [] for place in self.nodes}
        for place, sources in self.sources.items():
            for source in sources:
                found[source].append(place)
        return found

    def _enter(self, computation: int, given: Sequence[Place], kernel: Place | None, depth: int) -> None:
        for one in self.module.instructions(computation):
            place = (computation, one.id)
            if place in self.nodes:
                return  # the computation is known from another call
            self.nodes[place] = one
            self.kernels[place] = kernel or place
            if one.opcode == "parameter" and one.parameter < len(given):
                self._given[place] = given[one.parameter]
            if depth < CALLS_DEEPEST:
                self._enter_called(one, place, kernel, depth)

    def _enter_called(self, one: Instruction, place: Place, kernel: Place | None, depth: int) -> None:
        operands = [(place[0], number) for number in one.operands]
        if one.opcode in _ENTERED and one.called:
            inside = kernel or (place if one.opcode == "fusion" else None)
            self._enter(one.called[0], operands, inside, depth + 1)
        elif one.opcode == "while" and (body := body_of(self.module, one)) is not None:
            self._enter(body, operands, None, depth + 1)
            state = next(
                (each for each in self.module.instructions(body) if each.opcode == "parameter"), None
            )
            if state is not None:
                self._states[body, state.id] = (operands[0], self._root(body)) if operands else (place, None)

    def _root(self, computation: int) -> Place | None:
        root = root_of(self.module.instructions(computation))
        return None if root is None or (computation, root.id) not in self.nodes else (computation, root.id)

    def _sources_of(self, place: Place) -> Iterator[Place]:
        one = self.nodes[place]
        if one.opcode == "get-tuple-element" and one.operands:
            yield from self._parts((place[0], one.operands[0]), one.index, 0)
            return
        whole = self._behind(place)
        yield from (
            whole
            if whole is not None
            else ((place[0], number) for number in one.operands if (place[0], number) in self.nodes)
        )

    def _behind(self, place: Place) -> list[Place] | None:
        """What a parameter or a call stands for; None where it is computed from its operands."""
        one = self.nodes[place]
        if place in self._states:
            return [each for each in self._states[place] if each is not None]
        if place in self._given:
            return [self._given[place]]
        if one.opcode in _ENTERED and one.called and (root := self._root(one.called[0])) is not None:
            return [root]
        if one.opcode == "while" and (body := body_of(self.module, one)) is not None:
            return [root] if (root := self._root(body)) is not None else None
        return None

    def _parts(self, place: Place, index: int, depth: int) -> Iterator[Place]:
        """One part of a tuple, through calls and loops; the whole where that is not known."""
        one = self.nodes.get(place)
        if one is None:
            return
        behind = self._behind(place)
        if one.opcode == "tuple" and index < len(one.operands):
            yield place[0], one.operands[index]
        elif behind is not None and depth < CALLS_DEEPEST:
            for each in behind:
                yield from self._parts(each, index, depth + 1)
        elif one.opcode in WAITS and one.operands and depth < CALLS_DEEPEST:
            yield from self._parts((place[0], one.operands[0]), index, depth + 1)
        else:
            yield place
