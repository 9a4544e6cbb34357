"""Derivatives that a compiled program carries for every vector of a basis, and how many of them its result needs.

`jax.jacrev` sends the rows of an identity matrix backwards through a function, one for each output; `jax.jacfwd` sends them forwards,
one for each input. JAX writes into the name of each op which transformations it comes from: what is computed for the whole basis is
inside one `vmap` more than the identity matrix itself, and depends on it. The other direction needs a vector for each entry that is
read along the other side of the derivative; where only some rows of the basis are read, these are enough.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import field

from stepscope.analysis.xla.derivatives.inlined import Inlined, Place
from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import PRODUCTS, SILENT, Worker, is_library_product
from stepscope.analysis.xla.sorts import bounds_of
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import BASIS_NEEDED_MOST, CALLS_DEEPEST, MASKED_PROGRAM_MOST

_TRANSFORMATION = re.compile(r"\b(vmap|jvp|transpose)\(")
_SAID = (b"vmap(", b"jvp(", b"iota")
_VMAP, _BACKWARDS = "vmap", "transpose"
_SAME = (
    "bitcast",
    "copy",
    "convert",
    "transpose",
    "reshape",
    "tuple",
    "get-tuple-element",
    "parameter",
    "fusion",
    "call",
    "while",
)
Names = tuple[str, ...]
Read = list[tuple[int, int]]  # the size of each dimension, and how many entries along it are read


@dataclass(frozen=True)
class Basis:
    """`size` vectors are carried through a function, where `needed` would do.

    `backwards`: whether they are carried from the outputs. `carried`: of each instruction, the share of its work that is for the basis.
    `chosen`: whether these are the rows of the basis that are read; else they are vectors of the other direction.
    """

    size: int
    needed: int
    backwards: bool
    chosen: bool
    carried: dict[str, float]


def wide_bases(module: Module) -> list[Basis]:
    """The bases of the program that are wider than what it reads of the derivatives needs."""
    if sum(len(body) for body in module.bodies.values()) > MASKED_PROGRAM_MOST:
        return []
    if not _may_carry(module):
        return []
    graph = Inlined(module)
    found = [_of_identity(graph, *key, places) for key, places in _identities(graph).items()]
    return [each for each in found if each is not None and each.carried]


def _may_carry(module: Module) -> bool:
    """Whether the program says anywhere that it is transformed so; to read all of a large one takes seconds."""
    missing = set(_SAID)
    for message in itertools.chain.from_iterable(module.bodies.values()):
        text = message.tobytes()
        missing = {each for each in missing if each not in text}
        if not missing:
            return True
    return False


def _identities(graph: Inlined) -> dict[tuple[Names, int], list[Place]]:
    """The identity matrices, by the transformations that they are made in and their size."""
    found = defaultdict(list)
    for place, one in graph.nodes.items():
        if one.opcode != "compare" or one.direction != "EQ" or one.rank < 2:
            continue
        axes = [_axis(graph, source, 0) for source in graph.sources[place]]
        if len(axes) == 2 and None not in axes and axes[0] != axes[1]:
            sides = {one.shape.sizes[axis] for axis in axes if axis is not None and axis < one.rank}
            if len(sides) == 1 and (size := sides.pop()) > 1:
                found[_transformations(one), size].append(place)
    return found


def _axis(graph: Inlined, place: Place, depth: int) -> int | None:
    """The axis along which an array counts up; None of anything else."""
    one, sources = graph.nodes[place], graph.sources[place]
    if one.opcode == "iota":
        return one.dimensions[0] if one.dimensions else 0
    if depth > CALLS_DEEPEST or len(sources) != 1:
        return None
    if one.opcode in ("parameter", "convert", "copy", "fusion"):
        return _axis(graph, sources[0], depth + 1)
    if one.opcode == "broadcast":
        axis = _axis(graph, sources[0], depth + 1)
        return one.dimensions[axis] if axis is not None and axis < len(one.dimensions) else None
    return None


def _transformations(one: Instruction) -> Names:
    return tuple(_TRANSFORMATION.findall(one.op_name))


def _beyond(names: Names, outer: Names) -> tuple[Names, bool] | None:
    """The transformations inside of the outer ones, and whether these were transposed; None where they are others."""
    place, transposed = 0, False
    for at, name in enumerate(names):
        if place == len(outer):
            return names[at:], transposed
        if name == outer[place]:
            place += 1
        elif name == _BACKWARDS:
            transposed = True
        else:
            return None
    return ((), transposed) if place == len(outer) else None


@dataclass
class _Region:
    """`forward`: what is computed for the basis, and `sizes` of these arrays; `around`: gradients of that, too."""

    forward: set[Place] = field(default_factory=set)
    around: set[Place] = field(default_factory=set)
    sizes: set[int] = field(default_factory=set)


def _of_identity(graph: Inlined, outer: Names, size: int, places: Iterable[Place]) -> Basis | None:
    users = graph.users()
    reached = _reached(places, users)
    region = _region(graph, outer, reached)
    if not region.forward:
        return None
    samples = _samples(graph, region, size) if _VMAP in outer else {1}
    reads = list(_reads(graph, region, users))
    rows, others = _needed(reads, size, samples)
    needed = min(rows, others)
    if not 0 < needed <= BASIS_NEEDED_MOST * size:
        return None
    insides = [_beyond(_transformations(graph.nodes[place]), outer) for place in region.forward]
    backwards = Counter(inside[0][1] == _BACKWARDS for inside in insides if inside).most_common(1)[0][0]
    return Basis(size, needed, backwards, rows <= others, _carried(graph, region))


def _reached(places: Iterable[Place], users: dict[Place, list[Place]]) -> set[Place]:
    found: set[Place] = set()
    waiting = list(places)
    while waiting:
        new = [user for user in users[waiting.pop()] if user not in found]
        found.update(new)
        waiting += dict.fromkeys(new)
    return found


def _region(graph: Inlined, outer: Names, reached: set[Place]) -> _Region:
    """What is inside of a further `vmap`, around a derivative: that is how JAX carries a basis."""
    made = _Region()
    for place, one in graph.nodes.items():
        found = _beyond(_transformations(one), outer) if one.op_name else None
        if found is None or len(found[0]) < 2 or found[0][0] != _VMAP:
            continue
        made.around.add(place)
        if place in reached and not found[1]:
            made.forward.add(place)
    made.sizes = {graph.nodes[place].shape.elements for place in made.forward}
    # An array of the function itself may have as many numbers, and would be taken for one of the basis.
    plain = (one for place, one in graph.nodes.items() if place not in reached and _is_kept(graph, place))
    made.sizes -= {array.elements for one in plain for array in one.shape.arrays()}
    return made


def _is_kept(graph: Inlined, place: Place) -> bool:
    """Whether the result of an instruction is in memory, not only on the way inside of a kernel, nor one that is repeated for the basis."""
    opcode = graph.nodes[place].opcode
    if graph.kernels[place] != place or (opcode in SILENT and opcode != "parameter"):
        return False
    for _ in range(CALLS_DEEPEST):
        if graph.nodes[place].opcode not in _SAME or len(graph.sources[place]) != 1:
            break
        place = graph.sources[place][0]
    return graph.nodes[place].opcode != "broadcast"


def _samples(graph: Inlined, region: _Region, size: int) -> set[int]:
    """For how many samples the function is called, by the rows of the products with weights: there is one for each vector of the basis."""
    found = set()
    for place in region.forward:
        one = graph.nodes[place]
        if one.opcode not in PRODUCTS and not is_library_product(one):
            continue
        given = [graph.nodes[source].shape.elements for source in graph.sources[place][:2]]
        mine = [count for count in given if count in region.sizes]
        weights = [count for count in given if count not in region.sizes]
        if len(mine) == len(weights) == 1 and weights[0]:
            result = next(one.shape.arrays(), one.shape).elements
            rows = math.isqrt(mine[0] * result // weights[0])
            if rows * rows * weights[0] == mine[0] * result and rows % size == 0:
                found.add(rows // size)
    return found


def _reads(graph: Inlined, region: _Region, users: dict[Place, list[Place]]) -> Iterator[Read]:
    """What is read of each array of derivatives that leaves the region."""
    for origin in region.forward:
        if graph.nodes[origin].opcode in _SAME:
            continue
        parts = [_part(*each) for each in _leaving(graph, region, origin, users)]
        if parts:
            sizes = [size for size, _ in parts[0]]
            alike = all([size for size, _ in part] == sizes for part in parts)
            along = zip(*parts, strict=True) if alike else ([(size, range(size))] for size in sizes)
            yield [
                (size, _together(used for _, used in each)) for size, each in zip(sizes, along, strict=True)
            ]


def _leaving(
    graph: Inlined, region: _Region, origin: Place, users: dict[Place, list[Place]]
) -> Iterator[tuple[Instruction, Instruction | None]]:
    """Where an array is read outside of the region, as what is read and what reads it; None is who called the program."""
    seen, waiting = {origin}, [origin]
    result = graph.result
    while waiting:
        place = waiting.pop()
        if place == result:
            yield graph.nodes[place], None
        for user in users[place]:
            one = graph.nodes[user]
            if user in seen or (user in region.around and one.opcode not in _SAME):
                continue
            if one.opcode in _SAME and (user != result or one.opcode != "tuple"):
                seen.add(user)
                waiting.append(user)
            else:
                yield graph.nodes[place], None if user == result else one


def _part(one: Instruction, reader: Instruction | None) -> list[tuple[int, range]]:
    """The size of each dimension, and what is read along it."""
    sizes = next(one.shape.arrays(), one.shape).sizes
    bounds = bounds_of(reader.slices) if reader is not None and reader.opcode == "slice" else []
    if len(bounds) != len(sizes):
        return [(size, range(size)) for size in sizes]
    return [
        (size, range(start, min(limit, size))) for size, (start, limit) in zip(sizes, bounds, strict=True)
    ]


def _together(parts: Iterable[range]) -> int:
    """How many places several parts of a dimension cover."""
    covered = end = 0
    for part in sorted(parts, key=lambda each: each.start):
        covered += max(0, part.stop - max(end, part.start))
        end = max(end, part.stop)
    return covered


def _needed(reads: Iterable[Read], size: int, samples: set[int]) -> tuple[int, int]:
    """How many rows of the basis are read, and how many entries along the other side of the derivatives."""
    rows, others = 0, 0
    for read in reads:
        ways = list(_ways(read, size, samples)) or [(size, math.prod(used for _, used in read))]
        row, other = max(ways, key=min)
        rows, others = max(rows, row), others + other
    return rows, others


def _ways(read: Read, size: int, samples: set[int]) -> Iterator[tuple[int, int]]:
    """The same of one array, for each way in which its dimensions may be those of the basis and of the samples."""
    places = range(len(read))
    of_basis = [place for place in places if read[place][0] == size]
    of_samples: list[int | None] = [place for place in places if read[place][0] in samples]
    if not of_samples and 1 in samples:
        of_samples.append(None)
    for basis, batch in itertools.product(of_basis, of_samples):
        if basis != batch:
            yield read[basis][1], math.prod(read[place][1] for place in places if place not in (basis, batch))


def _carried(graph: Inlined, region: _Region) -> dict[str, float]:
    """How much of the work of each instruction is for the basis: all of a product, and of others by the arrays that they touch."""
    worker, found = Worker(graph.module), {}
    for kernel in {graph.kernels[place] for place in region.around}:
        one = graph.nodes[kernel]
        arrays = [
            graph.nodes[kernel[0], number].shape
            for number in one.operands
            if (kernel[0], number) in graph.nodes
        ]
        counts = [array.elements for each in (one.shape, *arrays) for array in each.arrays()]
        mine = sum(count for count in counts if count in region.sizes)
        if mine and one.opcode not in SILENT:
            found[one.name] = 1.0 if worker.product_of(one) is not None else mine / sum(counts)
    return found
