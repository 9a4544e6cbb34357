"""Which of the viewer's colours a slice has: that of a part where it stands for one, else one chosen by its name.

A style is a small number; web/timeline/colours.js has the colour of each.
"""

from __future__ import annotations

from zlib import crc32

from stepscope.analysis.parts import PARTS
from stepscope.native.view.lod import NO_STYLE
from stepscope.trace.schema import KINDS, ROLES

BY_NAME = 16  # styles 0 to 15: a name has always the same one
PART = {part: BY_NAME + number for number, part in enumerate(PARTS)}
QUIET = BY_NAME + len(PARTS)  # instants, allocations and other things that take no time
STEP = QUIET + 1  # and the next one: steps take turns

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


# What a kind or a role demands, by its code.
OF_KIND = bytes(_OF_KIND.get(kind, NO_STYLE) for kind in KINDS)
OF_ROLE = bytes(_OF_ROLE.get(role, NO_STYLE) for role in ROLES)
