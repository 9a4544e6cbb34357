"""Versions of packages, as far as it takes to compare them with what others require."""

from __future__ import annotations

import re

Version = tuple[int, ...]
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?")
_CLAUSE = re.compile(r"(~=|==|!=|<=|>=|<|>)\s*([0-9][0-9A-Za-z.+*]*)")


def parsed(text: str) -> Version:
    """The leading numbers: 2.11.0+cu130 is (2, 11, 0)."""
    numbers = re.match(r"\d+(?:\.\d+)*", text.strip().lstrip("v"))
    return tuple(int(part) for part in numbers.group().split(".")) if numbers else ()


def normal(name: str) -> str:
    """The name of a package as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement(line: str) -> tuple[str, str]:
    """The package and the version it must have: `protobuf (>=3.20,<5) ; extra == 'x'` is protobuf and `>=3.20,<5`."""
    found = _REQUIREMENT.match(line)
    return (normal(found[1]), found[2].strip()) if found else ("", "")


def satisfies(version: str, specifier: str) -> bool:
    """Whether the version is one that the specifier allows."""
    return all(_holds(parsed(version), sign, bound) for sign, bound in _CLAUSE.findall(specifier))


def _holds(version: Version, sign: str, bound: str) -> bool:
    limit = parsed(bound)
    if sign in ("==", "!=") and bound.endswith("*"):
        return (version[: len(limit)] == limit) is (sign == "==")
    length = max(len(version), len(limit))
    ours, theirs = _padded(version, length), _padded(limit, length)
    if sign == "~=":
        return ours >= theirs and version[: len(limit) - 1] == limit[:-1]
    return {
        "==": ours == theirs,
        "!=": ours != theirs,
        "<=": ours <= theirs,
        ">=": ours >= theirs,
        "<": ours < theirs,
        ">": ours > theirs,
    }[sign]


def _padded(version: Version, length: int) -> Version:
    return version + (0,) * (length - len(version))
