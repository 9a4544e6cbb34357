"""What the search box says: a part of a name or a /pattern/, durations (`dur>5ms`) and arguments (`stream=7`, `arg:pinned`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepscope.server.http.request import BadRequest

_NS_OF = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(?<!\S)dur\s*(<=|>=|<|>|=)\s*(\S+(?:\s+(?:ns|us|µs|μs|ms|s)(?!\S))?)")
_LENGTH = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|μs|ms|s)")
_ARGUMENT = re.compile(r'(?<!\S)(?:(arg):|("[^"]+"|[A-Za-z_][\w.-]*)=)("[^"]*"|\S+)')
LONGEST_NS = 2**62


@dataclass(frozen=True)
class Argument:
    """An argument whose value holds `value`; without a key, any of them."""

    key: str | None
    value: str


@dataclass(frozen=True)
class Wanted:
    """All of it must hold: `pattern` for the name (None for any), the bounds of the duration (both included), the arguments."""

    pattern: str | None
    least_ns: int
    most_ns: int
    arguments: tuple[Argument, ...]

    @property
    def is_name_only(self) -> bool:
        """Whether the name alone decides."""
        return self.least_ns <= 0 and self.most_ns >= LONGEST_NS and not self.arguments


def read_query(text: str) -> Wanted:
    """What is wanted; a duration that is none is refused in one sentence."""
    text = text.strip()
    if is_pattern(text):
        return Wanted(text[1:-1], 0, LONGEST_NS, ())
    least, most = 0, LONGEST_NS
    for sign, length in _DURATION.findall(text):
        low, high = _bounds(sign, length)
        least, most = max(least, low), min(most, high)
    rest = _DURATION.sub(" ", text)
    arguments = tuple(_argument(*found) for found in _ARGUMENT.findall(rest))
    return Wanted(_pattern(" ".join(_ARGUMENT.sub(" ", rest).split()), text), least, most, arguments)


def is_pattern(text: str) -> bool:
    """Whether it is a regular expression between slashes."""
    return len(text) > 2 and text.startswith("/") and text.endswith("/")


def _pattern(name: str, text: str) -> str | None:
    if not name:
        return None
    if is_pattern(name):
        return name[1:-1]
    return re.escape(text if name == " ".join(text.split()) else name)  # alone, with the spaces that it has


def _argument(any_key: str, key: str, value: str) -> Argument:
    return Argument(None if any_key else key.strip('"'), value.strip('"'))


def _bounds(sign: str, text: str) -> tuple[int, int]:
    found = _LENGTH.fullmatch(text)
    if found is None or len(text) > 30:
        raise BadRequest(f"dur needs a number with ns, us, ms or s, as in dur{sign}5ms.", where="q")
    exact = float(found[1]) * _NS_OF[found[2]]
    length = min(round(exact), LONGEST_NS)
    return {
        ">": (length + 1, LONGEST_NS),
        ">=": (length, LONGEST_NS),
        "<": (0, length - 1),
        "<=": (0, length),
        "=": (length, length),
    }[sign]
