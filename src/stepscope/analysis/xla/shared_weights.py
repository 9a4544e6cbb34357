"""Products of compiled programs with weights that the program is given, and those that use the same weights several times.

A model that is called once for each of several inputs, as for both halves of classifier-free guidance, multiplies each of its
weights as many times, with activations of one shape, and none of these products needs another one. That is not so in a
recurrent network, a weight that layers share, and a forward pass with its gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import (
    PRODUCTS,
    Worker,
    dimension_numbers,
    is_library_product,
)
from stepscope.analysis.xla.loops import CALLS, WAITS, body_of, root_of
from stepscope.analysis.xla.sizes.array_bytes import BITS, shape_bytes
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.repeated_work import SHARED_WEIGHTS_LEAST
from stepscope.registers.policy.useless_work import CALLS_DEEPEST

# What comes out of them is what goes in, in another order, type or part.
_SAME = ("bitcast", "convert", "transpose", "copy", "copy-start", "copy-done", "reshape")
_PARTS = ("slice", "dynamic-slice")
_ENTERED = ("fusion", "while", *CALLS)
_TURN, _CONSTANT = "turn", "constant"


@dataclass(frozen=True)
class Source:
    """A parameter, its part (-1 where it is a single array), and which parts of that are taken.

    Of a part that is chosen while the program runs, the path has the sources of its indices.
    """

    parameter: int
    part: int = -1
    path: tuple[Step, ...] = ()


Step = bytes | tuple[Source | str, ...]


@dataclass(frozen=True)
class Product:
    """A product with a weight: the kernel's op and shapes, FLOPs, bytes of the weight and of all else, and bits of a number of it.

    `is_sum`: it is written as a sum of products, as XLA does where one side is a vector.
    """

    kernel: tuple[str, str | None]
    weight: Source
    signature: tuple[object, ...]
    flops: int
    weight_bytes: int
    other_bytes: int
    bits: int
    is_sum: bool = False


@dataclass(frozen=True)
class SharedWeights:
    """`times`: how often the program multiplies most of its weights, 1 if once; `kernels`: the products that it repeats, by op and shapes.

    `products`: all that have a weight, by op and shapes; `weights`: how many weights one computation multiplies. `loads`: kernels that
    only take, cast or reorder weights.
    """

    times: int
    kernels: frozenset[tuple[str, str | None]]
    products: dict[tuple[str, str | None], Product]
    weights: int
    loads: frozenset[tuple[str, str | None]] = frozenset()


def shared_weights(module: Module) -> SharedWeights:
    """How often the program uses its weights, in its own computation and in the bodies of its loops."""
    reader = _Reader(module)
    frames = [module.entry, *reader.bodies]
    groups = [group for number in frames for group in reader.repeated(number)]
    products = {one.kernel: one for number in frames for _, one in reader.products(number)}
    counts: dict[int, int] = {}
    for group in groups:
        counts[len(group)] = counts.get(len(group), 0) + sum(one.flops for one in group)
    times = max(counts, key=lambda each: counts[each], default=1)
    chosen = [group for group in groups if len(group) == times]
    total = max((sum(one.flops for _, one in reader.products(number)) for number in frames), default=0)
    enough = len(chosen) >= SHARED_WEIGHTS_LEAST and counts.get(times, 0) > MAJORITY * total
    kernels = frozenset(one.kernel for group in chosen for one in group) if enough else frozenset()
    weights = max((len({one.weight for _, one in reader.products(number)}) for number in frames), default=0)
    loads = frozenset(each for number in frames for each in reader.loads(number)) - products.keys()
    return SharedWeights(times if enough else 1, kernels, products, weights, loads)


class _Reader:
    """Reads the products of each computation once, with their weights as what the computation is given."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._worker = Worker(module)
        self._products: dict[int, list[tuple[int, Product]]] = {}
        self._frames: dict[int, _Frame] = {}

    @cached_property
    def bodies(self) -> list[int]:
        """The bodies of loops that the program's own computation leads to."""
        found: dict[int, None] = {}
        waiting = [self.module.entry]
        while waiting:
            for one in self.module.instructions(waiting.pop()):
                if one.opcode in ("while", "call"):
                    inside = (
                        body_of(self.module, one) if one.opcode == "while" else next(iter(one.called), None)
                    )
                    if inside is not None and inside not in found and inside != self.module.entry:
                        found[inside] = None
                        waiting.append(inside)
        return list(found)

    def products(self, computation: int, depth: int = 0) -> list[tuple[int, Product]]:
        """The instruction of this computation that holds it, and the product."""
        if computation not in self._products:
            self._products[computation] = []  # for one that calls itself
            self._products[computation] = list(self._read(computation, depth))
        return self._products[computation]

    def _read(self, computation: int, depth: int) -> Iterator[tuple[int, Product]]:
        frame = self._frame(computation)
        for one in self.module.instructions(computation):
            if one.opcode in (*PRODUCTS, "reduce") or is_library_product(one):
                found = self._product(one, frame)
                if found is not None:
                    yield one.id, found
            elif one.opcode in _ENTERED and depth < CALLS_DEEPEST:
                yield from ((one.id, each) for each in self._inside(one, frame, depth))

    def _inside(self, one: Instruction, frame: _Frame, depth: int) -> Iterator[Product]:
        """The products of what it calls, with their weights as this computation knows them."""
        inner = body_of(self.module, one) if one.opcode == "while" else next(iter(one.called), None)
        if inner is None:
            return
        for _, each in self.products(inner, depth + 1):
            source = self._outside(each.weight, one, frame, inner)
            if source is None:
                continue
            kernel = each.kernel
            if one.opcode == "fusion":
                work = self._worker.work(one, frame.by_id)
                kernel = (work.op, work.shapes)
            yield replace(each, kernel=kernel, weight=source)

    def _outside(self, inner: Source, one: Instruction, frame: _Frame, computation: int) -> Source | None:
        """What a source inside of a call, fused kernel or loop is outside of it; of a loop only what stays as it is."""
        if one.opcode != "while":
            return frame.outside(inner, one)
        kept = self._frame(computation).kept
        if inner.part not in kept:
            return None
        turns = tuple(step if isinstance(step, bytes) else _by_turns(step, kept) for step in inner.path)
        found = frame.source(one.operands[0], inner.part) if one.operands else None
        return None if found is None else replace(found, path=found.path + turns)

    def _product(self, one: Instruction, frame: _Frame) -> Product | None:
        """Of two operands that the computation is given, the larger one is the weight."""
        is_sum = one.opcode == "reduce"
        given = self._summed(one, frame) if is_sum else frame.operands(one)[:2]
        sources = [(frame.source(each.id), shape_bytes(each.shape) or 0, each) for each in given]
        known = [each for each in sources if each[0] is not None]
        flops = 2 * given[0].shape.elements if is_sum and given else self._worker.flops(one, frame.by_id)
        if not known or not flops or len(given) < len(("lhs", "rhs")):
            return None
        source, size, weight = max(known, key=lambda each: each[1])
        if source is None or (is_sum and weight is not given[0]):
            return None
        result = next(one.shape.arrays(), Shape())
        work = self._worker.work(one, frame.by_id)
        shapes = tuple(each.shape.sizes for each in given)
        signature = (shapes, given.index(weight), result.sizes, dimension_numbers(one))
        rest = sum(each[1] for each in sources) - size + (shape_bytes(result) or 0)
        bits = BITS.get(weight.element, 0)
        return Product((work.op, work.shapes), source, signature, flops, size, rest, bits, is_sum)

    def _summed(self, one: Instruction, frame: _Frame) -> list[Instruction]:
        """The matrix and the vector of which a sum adds up the products; none where it is another sum."""
        adds = [root_of(self.module.instructions(number)) for number in one.called[:1]]
        product = frame.before(one.operands[0]) if one.operands else None
        if not adds or adds[0] is None or adds[0].opcode != "add" or product is None:
            return []
        if product.opcode != "multiply":
            return []
        factors = [frame.before(each.id) for each in frame.operands(product)]
        vectors = [each for each in factors if each is not None and each.opcode == "broadcast"]
        matrices = [each for each in factors if each is not None and each.opcode != "broadcast"]
        rows = frame.operands(vectors[0])[:1] if len(vectors) == 1 else []
        return [*matrices, *rows] if rows and matrices and rows[0].shape.elements > 1 else []

    def loads(self, computation: int) -> Iterator[tuple[str, str | None]]:
        """Op and shapes of the kernels that are given nothing but weights of products, and counters."""
        frame = self._frame(computation)
        weights = {(one.weight.parameter, one.weight.part) for _, one in self.products(computation)}
        for one in self.module.instructions(computation):
            if one.opcode not in ("fusion", "copy", "copy-start", *_PARTS, *CALLS):
                continue
            arrays = [each for each in frame.operands(one) if each.shape.sizes]
            sources = [frame.source(each.id) for each in arrays]
            if sources and all(
                each is not None and (each.parameter, each.part) in weights for each in sources
            ):
                work = self._worker.work(one, frame.by_id)
                yield work.op, work.shapes

    def _frame(self, computation: int) -> _Frame:
        if computation not in self._frames:
            self._frames[computation] = _Frame(self.module, computation)
        return self._frames[computation]

    def repeated(self, computation: int) -> list[list[Product]]:
        """Products of one weight with activations of one shape, where none needs another of them; two or more each."""
        groups: dict[tuple[object, ...], dict[int, Product]] = {}
        for holder, one in self.products(computation):
            groups.setdefault((one.weight, one.signature), {})[holder] = one
        several = [group for group in groups.values() if len(group) > 1]
        bits: dict[int, int] = {}
        for place, group in enumerate(several):
            for holder in group:
                bits[holder] = bits.get(holder, 0) | 1 << place
        needed = self._needed(computation, bits) if several else 0
        return [list(group.values()) for place, group in enumerate(several) if not needed >> place & 1]

    def _needed(self, computation: int, bits: dict[int, int]) -> int:
        """The groups of which one member needs another."""
        before: dict[int, int] = {}
        found = 0
        for one in self.module.instructions(computation):
            behind = 0
            for operand in one.operands:
                behind |= before.get(operand, 0)
            own = bits.get(one.id, 0)
            found |= behind & own
            before[one.id] = behind | own
        return found


def _by_turns(step: tuple[Source | str, ...], kept: frozenset[int]) -> tuple[Source | str, ...]:
    """Indices that a loop counts are the same in each loop over all turns."""
    return tuple(
        _TURN if isinstance(index, Source) and index.part not in kept and not index.path else index
        for index in step
    )


class _Frame:
    """One computation, asked where its values come from."""

    def __init__(self, module: Module, computation: int, depth: int = 0) -> None:
        self._module = module
        self._depth = depth  # how many values and calls led here: a damaged program may go round in circles
        self._instructions = module.instructions(computation)
        self.by_id = {one.id: one for one in self._instructions}
        self._known: dict[int, Source | None] = {}

    def source(self, number: int, part: int = -1) -> Source | None:
        """The parameter, or part of one, that the value is, in another form at most; of a tuple, that its part is."""
        one = self.by_id.get(number)
        if one is None:
            return None
        if part >= 0:
            if one.opcode == "tuple" and part < len(one.operands):
                return self.source(one.operands[part])
            return Source(one.parameter, part) if one.opcode == "parameter" else None
        if number not in self._known and self._depth < CALLS_DEEPEST:
            self._depth += 1
            self._known[number] = self._source(one)
            self._depth -= 1
        return self._known.get(number)

    def operands(self, one: Instruction) -> list[Instruction]:
        """What the instruction is given, as far as it is there."""
        return [self.by_id[operand] for operand in one.operands if operand in self.by_id]

    def before(self, number: int) -> Instruction | None:
        """What the value was before it was cast or reordered."""
        one = self.by_id.get(number)
        for _ in self.by_id:
            if one is None or one.opcode not in _SAME or not one.operands:
                break
            one = self.by_id.get(one.operands[0])
        return one

    def _source(self, one: Instruction) -> Source | None:
        path: tuple[Step, ...] = ()
        for _ in self.by_id:
            first = self.by_id.get(one.operands[0]) if one.operands else None
            if one.opcode == "parameter":
                return Source(one.parameter, path=path)
            if first is None:
                return None
            if one.opcode in _PARTS:
                indices = [self._index(operand) for operand in one.operands[1:]]
                known = tuple(index for index in indices if index is not None)
                if len(known) < len(indices):
                    return None
                path = (one.slices or known, *path)
            elif one.opcode not in (*_SAME, *WAITS):
                found = self._passed_on(one, first)
                return None if found is None else replace(found, path=found.path + path)
            one = first
        return None

    def _index(self, number: int) -> Source | str | None:
        one = self.by_id.get(number)
        return _CONSTANT if one is not None and one.opcode == "constant" else self.source(number)

    def _passed_on(self, one: Instruction, first: Instruction) -> Source | None:
        """What comes out of a tuple, or of a kernel that only casts, reorders or takes a part, fused or beside other work."""
        if one.opcode == "get-tuple-element":
            return self.source(first.id, one.index)
        if one.opcode not in ("fusion", *CALLS) or not one.called:
            return None
        root = root_of(self._module.instructions(one.called[0]))
        if root is None or (one.opcode == "fusion" and root.opcode == "fusion"):
            return None
        inner = _Frame(self._module, one.called[0], self._depth).source(root.id)
        return None if inner is None else self.outside(inner, one)

    def outside(self, inner: Source, one: Instruction) -> Source | None:
        """What a source inside of a call or fused kernel is here."""
        if inner.part >= 0 or inner.parameter >= len(one.operands):
            return None
        found = self.source(one.operands[inner.parameter])
        path: list[Step] = []
        for step in inner.path:
            indices = step if isinstance(step, tuple) else ()
            mapped = [self._index_outside(index, one) for index in indices]
            known = tuple(index for index in mapped if index is not None)
            if len(known) < len(mapped):
                return None
            path.append(known if isinstance(step, tuple) else step)
        return None if found is None else replace(found, path=(*found.path, *path))

    def _index_outside(self, index: Source | str, one: Instruction) -> Source | str | None:
        if isinstance(index, str):
            return index
        is_here = index.part < 0 and not index.path and index.parameter < len(one.operands)
        return self._index(one.operands[index.parameter]) if is_here else None

    @cached_property
    def kept(self) -> frozenset[int]:
        """The parts of what a loop carries that stay as they are."""
        root = root_of(self._instructions)
        operands = root.operands if root is not None and root.opcode == "tuple" else []
        return frozenset(
            part for part, operand in enumerate(operands) if self.source(operand) == Source(0, part)
        )
