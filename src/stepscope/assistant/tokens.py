"""Text within a budget of tokens; a token is four bytes of UTF-8, which is near enough for every model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

BYTES_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """How many tokens the text takes, at most."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


@dataclass
class Block:
    """A heading and its entries, of which the first `least` matter most. `left` entries exist beyond these.

    An entry may have several lines and is shown as a whole or not at all.
    """

    title: str
    entries: Sequence[str]
    least: int = 1
    left: int = 0
    shown: int = field(default=0, init=False)

    def text(self) -> str:
        """Its lines, with the count of what is not among them."""
        missing = len(self.entries) - self.shown + self.left
        rest = [f"… {missing} more"] if missing else []
        return "\n".join([*([self.title] if self.title else []), *self.entries[: self.shown], *rest])


def fit_blocks(blocks: Sequence[Block], budget: int) -> str:
    """The blocks in their order with as many entries as there is room for: first what matters most of each, then the rest.

    Lists of which nothing fits are counted in the last line.
    """
    there = [block for block in blocks if block.entries]
    _fill(there, budget)
    for _ in there:
        last = _left_out(there)
        if count_tokens(text := _joined(there) + last) <= budget:
            return text
        _fill(there, budget - count_tokens(last))
    return _joined(there)


def _fill(blocks: Sequence[Block], budget: int) -> None:
    for block in blocks:
        block.shown = 0
    for rounds in (False, True):
        for block in blocks:
            most = len(block.entries) if rounds else min(block.least, len(block.entries))
            while block.shown < most:
                block.shown += 1
                if count_tokens(_joined(blocks)) > budget:
                    block.shown -= 1
                    break


def _joined(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text() for block in blocks if block.shown) + "\n"


def _left_out(blocks: Sequence[Block]) -> str:
    """A line for the lists of which nothing is shown."""
    counts = [
        f"{block.title.partition(',')[0]} ({len(block.entries) + block.left})"
        for block in blocks
        if block.title and not block.shown
    ]
    return f"… left out: {', '.join(counts)}\n" if counts else ""
