"""Case number N of the pipeline: which profile it is made of, and what is wrong with it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.fuzz import documents
from benchmarks.fuzz.messages import Damage, rewritten
from benchmarks.fuzz.mutate import mutated
from benchmarks.fuzz.originals import NAMES, original


@dataclass(frozen=True)
class Case:
    """A damaged profile. `rows` is how many of its events may be lost with all else intact; None if that is not known."""

    seed: int
    name: str
    files: dict[str, bytes]
    rows: int | None = None


def case(seed: int) -> Case:
    """Always the same for the same number; all originals come up alike."""
    dice = random.Random(seed)
    name = NAMES[seed % len(NAMES)]
    files = dict(original(name).files)
    chosen = dice.choice(sorted(files))
    data, rows = _damaged(dice, chosen, files[chosen])
    files[chosen] = data
    if len(files) > 1 and dice.random() < 0.2:
        other = dice.choice(sorted(files))
        files[other], more = _damaged(dice, other, original(name).files[other])
        rows = None if rows is None or more is None else rows + more
    return Case(seed, name, files, rows)


def _damaged(dice: random.Random, path: str, data: bytes) -> tuple[bytes, int | None]:
    if path.endswith(".stepscope.json"):
        return documents.sidecar(dice, data), 0
    if data.lstrip()[:1] in (b"{", b"[") and dice.random() < 0.7:
        return documents.damaged(dice, data)
    if path.endswith(".pb") and dice.random() < 0.6:
        for _ in range(dice.choice((1, 1, 1, 4, 16))):
            data = rewritten(dice, data, dice.choice(tuple(Damage))) or b"\0"
        return data, None
    other = original(dice.choice(NAMES)).files
    # Packed or not: the content says which, whatever the name says.
    return mutated(dice, data, other[dice.choice(sorted(other))]), None
