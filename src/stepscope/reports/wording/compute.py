"""What the parts of compute are called."""

from __future__ import annotations

_TITLES = {
    "ideal": "ideal",
    "matmul": "products below peak",
    "traffic": "traffic that fusion removes",
    "recomputed": "recomputed",
    "small": "small kernels",
    "memory": "bandwidth below peak",
    "layout": "layout changes",
    "unknown": "not known",
}


def reason_title(reason: str) -> str:
    """The reason as people read it."""
    return _TITLES.get(reason, reason)
