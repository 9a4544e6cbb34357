"""Which of the viewer's colours a slice has: that of a part where it stands for one, else one chosen by its name.

A style is a small number; web/timeline/colours.js has the colour of each.
"""

from __future__ import annotations

from zlib import crc32

import polars as pl

from stepscope.analysis.parts import PARTS
from stepscope.trace.schema import KINDS, ROLES

BY_NAME = 16  # styles 0 to 15: a name has always the same one
PART = {part: BY_NAME + number for number, part in enumerate(PARTS)}
QUIET = BY_NAME + len(PARTS)  # instants, allocations and other things that take no time
STEP = QUIET + 1  # and the next one: steps take turns
COUNT = STEP + 2

_OF_KIND = {
    "copy": PART["copy"],
    "memset": PART["copy"],
    "sync": PART["sync"],
    "overhead": PART["profiler"],
    "memory": QUIET,
    "instant": QUIET,
}
_OF_ROLE = {
    "input": PART["input"],
    "collective": PART["collective"],
    "compile": PART["compile"],
    "io": PART["io"],
}
# In front of the digits that tell one step or tensor from the next, which should look alike.
_DIGITS = str.maketrans("", "", "0123456789")


def of_name(name: str) -> int:
    """The style of a name, whatever numbers are in it."""
    return crc32(name.translate(_DIGITS).encode("utf-8", "surrogatepass")) % BY_NAME


def of_kinds(kind: pl.Series, role: pl.Series) -> pl.Series:
    """The style that a kind or a role demands, null where the name decides. Roles count more."""
    kinds = pl.Series([_OF_KIND.get(each) for each in KINDS], dtype=pl.UInt32)
    roles = pl.Series([_OF_ROLE.get(each) for each in ROLES], dtype=pl.UInt32)
    by_role = roles.gather(role.to_physical())
    return pl.select(pl.coalesce(by_role, kinds.gather(kind.to_physical()))).to_series()
