"""Kinds and places in words."""

from __future__ import annotations

from stepscope.analysis.host.place import Place

_WORDS = {
    "parameter": "weights",
    "gradient": "gradients",
    "activation": "activations",
    "input": "input",
    "temporary": "temporary tensors",
}


def call(kind: str) -> str:
    """The kind in words."""
    return _WORDS.get(kind, kind)


def at(place: Place) -> str:
    """train.py:16 in body."""
    return f"{name_file(place.file)}:{place.line}" + (
        f" in {place.function}" if place.function and place.function != "<module>" else ""
    )


def name_file(path: str) -> str:
    """The name of a file without its folders."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]
