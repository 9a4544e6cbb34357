"""What a request asks for, taken from untrusted text: wrong or absurd values are refused in one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from stepscope.errors import StepscopeError

LONGEST_TEXT = 2_000
MOST_PARAMETERS = 64
LARGEST_BODY = 1 << 20
# What JavaScript and Polars both hold exactly enough; times and ids never come near it.
LARGEST_INTEGER = 2**62
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")

T = TypeVar("T")


class Refused(StepscopeError):
    """A request that gets no answer; `status` is its HTTP status: 4xx, and 500 for a fault of ours."""

    def __init__(self, what: str, *, status: int = 400, fix: str | None = None, where: str = "") -> None:
        super().__init__(what, fix=fix)
        self.status = status
        self.where = where


class BadRequest(Refused):
    """A parameter that is missing, malformed or beyond its limits."""


class Query:
    """The parameters of a request by name; each is checked when it is asked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        if len(values) > MOST_PARAMETERS:
            raise BadRequest(f"More than {MOST_PARAMETERS} parameters.")
        self._values = values

    def words(self) -> str:
        """All of them as one text, whatever their order was."""
        return repr(sorted(self._values.items()))

    def has(self, name: str) -> bool:
        """Whether it was given and is not empty."""
        return bool(self._values.get(name))

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number within the limits, both included. Without a default it must be given."""
        text = self._values.get(name, "")
        if not text:
            return _default(name, default)
        if _INTEGER.fullmatch(text) is None:
            raise BadRequest(f"{name} must be a whole number.", where=name)
        return within(name, int(text), low, high)

    def maybe_integer(self, name: str, low: int, high: int) -> int | None:
        """The same where nothing stands for no wish."""
        return self.integer(name, low, high) if self.has(name) else None

    def text(self, name: str, longest: int = LONGEST_TEXT, default: str | None = None) -> str:
        """A text of limited length."""
        if name not in self._values:
            return _default(name, default)
        value = self._values[name]
        if len(value) > longest:
            raise BadRequest(f"{name} is longer than {longest:,} characters.", where=name)
        if "\0" in value:
            raise BadRequest(f"{name} has characters that no text has.", where=name)
        return value

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of the words."""
        value = self._values.get(name, "")
        if not value:
            return _default(name, default)
        if value not in choices:
            raise BadRequest(f"{name} must be one of {', '.join(choices)}.", where=name)
        return value

    def choices(self, name: str, choices: Sequence[str]) -> tuple[str, ...]:
        """Some of the words, comma separated, each once."""
        words = [word for word in self.text(name, default="").split(",") if word]
        if any(word not in choices for word in words):
            raise BadRequest(f"{name} must be of {', '.join(choices)}.", where=name)
        return tuple(dict.fromkeys(words))

    def flag(self, name: str) -> bool:
        """Whether it is 1 or true."""
        return self.choice(name, ("0", "1", "false", "true"), "0") in ("1", "true")

    def integers(self, name: str, most: int, low: int = 0, high: int = LARGEST_INTEGER) -> list[int]:
        """Whole numbers, comma separated, a limited number; none if it is not given."""
        words = [word for word in self._values.get(name, "").split(",") if word]
        if len(words) > most:
            raise BadRequest(f"{name} has more than {most:,} numbers.", where=name)
        if any(_INTEGER.fullmatch(word) is None for word in words):
            raise BadRequest(f"{name} must be whole numbers with commas between them.", where=name)
        return [within(name, int(word), low, high) for word in words]


def within(name: str, value: int, low: int, high: int) -> int:
    """The value, if it is within the limits."""
    if not low <= value <= high:
        raise BadRequest(f"{name} must be from {low:,} to {high:,}.", where=name)
    return value


def _default(name: str, default: T | None) -> T:
    if default is None:
        raise BadRequest(f"{name} is missing.", where=name)
    return default


def json_object(body: bytes) -> dict[str, Any]:
    """The body of a POST: one JSON object."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BadRequest("The body must be JSON.") from None
    if not isinstance(value, dict):
        raise BadRequest("The body must be a JSON object.")
    return value
