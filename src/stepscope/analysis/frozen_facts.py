"""Which weights an optimizer leaves as they are, as the capture noted it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from stepscope.trace.trace import Trace


def noted_zeros(trace: Trace) -> list[str]:
    """The names under which a job of JAX keeps numbers that are zero."""
    names = [each.get("name") for each in _noted(trace, "jax")]
    return [name for name in names if isinstance(name, str) and name]


def trained_shapes(trace: Trace) -> dict[str, Counter[str]]:
    """For classes of optimizers with a frozen group: how many parameters of each shape are in the others; what makes no sense is left out."""
    found = {}
    for each in _noted(trace, "torch"):
        name, trained = each.get("optimizer"), each.get("trained")
        if isinstance(name, str) and isinstance(trained, list) and trained and all(map(_is_shape, trained)):
            found[name] = Counter(json.dumps(shape, separators=(",", ":")) for shape in trained)
    return found


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(type(side) is int and side >= 0 for side in shape)


def _noted(trace: Trace, framework: str) -> list[dict[str, Any]]:
    noted = trace.info.capture.get("frozen")
    rows = noted if isinstance(noted, list) else []
    return [each for each in rows if isinstance(each, dict) and each.get("framework") == framework]
