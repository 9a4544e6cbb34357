"""Types inside a mangled C++ name (`_ZN5aiter7rmsnormIDF16bLi256EEEvPT_`), which ROCm's tools leave as it is.

Only as much of the Itanium ABI's grammar as is needed to find types: identifiers carry their length, builtin types are
single letters that count inside template arguments alone, everything else is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from stepscope.lazy import pattern

_BUILTIN = {
    "f": "float", "d": "double", "e": "double", "i": "int", "j": "unsigned", "l": "long", "m": "long",
    "x": "long", "y": "long", "s": "short", "t": "short", "a": "char", "h": "char", "c": "char", "b": "bool",
}  # fmt: skip
_TOKEN = pattern(
    r"(?P<extended>DF16b|DF16_|Dh|D[a-zA-Z])"
    r"|(?P<literal>L[a-z]n?\d*E)"
    r"|(?P<substitution>S[0-9A-Z]*_|S[a-z]|T[0-9A-Z]*_)"
    r"|(?P<length>\d{1,4})"
    r"|(?P<open>[INXJF])"
    r"|(?P<close>E)"
    r"|(?P<letter>.)",
    re.DOTALL,
)
_EXTENDED = {"DF16b": "bfloat16", "DF16_": "half", "Dh": "half"}


@lru_cache(maxsize=4096)
def words_of(name: str) -> str:
    """Identifiers and types of a mangled name, as words apart; empty for a name that is not mangled."""
    return " ".join(_words(name)) if name.startswith("_Z") else ""


def _words(name: str) -> Iterator[str]:
    at, around, templates = len("_Z"), "", 0
    while (found := _TOKEN.match(name, at)) is not None:
        at = found.end()
        if found["length"]:
            size = int(found["length"])
            yield name[at : at + size]
            at += size
        elif found["extended"]:
            yield _EXTENDED.get(found["extended"], "")
        elif found["open"]:
            around += found["open"]
            templates += found["open"] == "I"
        elif found["close"]:
            templates -= around[-1:] == "I"
            around = around[:-1]
        elif found["letter"] in _BUILTIN and templates:
            yield _BUILTIN[found["letter"]]
