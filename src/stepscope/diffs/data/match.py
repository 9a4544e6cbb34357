"""Which row of one run is which of the other: by all that tells rows apart, else by less of it, else by name alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

Key = tuple[str | None, ...]
# train.py(12): step, $train.py:12 step: an edit above the function moves it.
LINE_OF_FUNCTION = r"(\.pyx?)(?::\d+|\(\d+\):?)"


@dataclass(frozen=True)
class Pair:
    """Rows that are the same thing. `by` says by what; `a` or `b` where only that run has it."""

    a: tuple[Key, ...]
    b: tuple[Key, ...]
    by: str


Level = tuple[
    str, Callable[[Key], Key | None]
]  # what it matches by, and the part of the key that must be equal


def match(a: Collection[Key], b: Collection[Key], levels: Sequence[Level]) -> list[Pair]:
    """Level by level, each over what the ones before have left; what is left at last is in one run only."""
    left_a, left_b = list(a), list(b)
    found: list[Pair] = []
    for by, part_of in levels:
        groups_a, groups_b = _grouped(left_a, part_of), _grouped(left_b, part_of)
        common = [part for part in groups_a if part in groups_b]
        found += [Pair(tuple(groups_a[part]), tuple(groups_b[part]), by) for part in common]
        taken_a = {key for part in common for key in groups_a[part]}
        taken_b = {key for part in common for key in groups_b[part]}
        left_a = [key for key in left_a if key not in taken_a]
        left_b = [key for key in left_b if key not in taken_b]
    found += [Pair((key,), (), "a") for key in left_a]
    found += [Pair((), (key,), "b") for key in left_b]
    return found


def without_line(name: str) -> str:
    """The function, wherever in its file it is."""
    return re.sub(LINE_OF_FUNCTION, r"\1", name)


def _grouped(keys: Collection[Key], part_of: Callable[[Key], Key | None]) -> dict[Key, list[Key]]:
    groups: dict[Key, list[Key]] = defaultdict(list)
    for key in keys:
        part = part_of(key)
        if part is not None:
            groups[part].append(key)
    return groups


# Keys of ops are (name, scope, shapes), of kernels (name, op, precision).
OPS: tuple[Level, ...] = (
    ("name, scope and shapes", lambda key: key),
    ("name and scope", lambda key: key[:2] if key[1] is not None else None),
    ("name and shapes", lambda key: (key[0], key[2]) if key[2] is not None else None),
    ("name", lambda key: key[:1]),
)
KERNELS: tuple[Level, ...] = (
    ("name and op", lambda key: key[:2]),
    ("name", lambda key: key[:1]),
    ("op", lambda key: key[1:2] if key[1] is not None else None),
)
# Of what the account names: (name, part).
NAMES: tuple[Level, ...] = (
    ("name", lambda key: key),
    ("name without its line", lambda key: (without_line(key[0] or ""), key[1])),
)
EXACT: tuple[Level, ...] = (("name", lambda key: key),)
