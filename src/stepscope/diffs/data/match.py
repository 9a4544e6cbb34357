"""Matches rows of one run with rows of the other: by everything that distinguishes rows, else by less of it, else by name alone."""

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
    """Rows of both runs that are the same thing. `by` is what they were matched by; `a` or `b` where only that run has them."""

    a: tuple[Key, ...]
    b: tuple[Key, ...]
    by: str

    @property
    def key(self) -> Key:
        """The first key, of B where B has one."""
        return (self.b or self.a)[0]


# What it matches by, and the part of the key that must be equal.
Level = tuple[str, Callable[[Key], Key | None]]


def match(a: Collection[Key], b: Collection[Key], levels: Sequence[Level]) -> list[Pair]:
    """Level by level, each over what the levels before left unmatched; what is left at the end is in one run only."""
    left_a, left_b = list(a), list(b)
    pairs: list[Pair] = []
    for by, part_of in levels:
        groups_a, groups_b = _group(left_a, part_of), _group(left_b, part_of)
        common = [part for part in groups_a if part in groups_b]
        pairs += [Pair(tuple(groups_a[part]), tuple(groups_b[part]), by) for part in common]
        matched_a = {key for part in common for key in groups_a[part]}
        matched_b = {key for part in common for key in groups_b[part]}
        left_a = [key for key in left_a if key not in matched_a]
        left_b = [key for key in left_b if key not in matched_b]
    pairs += [Pair((key,), (), "a") for key in left_a]
    pairs += [Pair((), (key,), "b") for key in left_b]
    return pairs


def strip_line(name: str) -> str:
    """The function, wherever in its file it is."""
    return re.sub(LINE_OF_FUNCTION, r"\1", name)


def _group(keys: Collection[Key], part_of: Callable[[Key], Key | None]) -> dict[Key, list[Key]]:
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
# Keys of names that the account charges: (name, part).
NAMES: tuple[Level, ...] = (
    ("name", lambda key: key),
    ("name without its line", lambda key: (strip_line(key[0] or ""), key[1])),
)
EXACT: tuple[Level, ...] = (("name", lambda key: key),)
