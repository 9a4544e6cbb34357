"""A document whose events are known by their places, to be cut and damaged on purpose."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.builders.documents import event, on_stream


@dataclass(frozen=True)
class Document:
    """The bytes, and for each event its name and where it begins and ends."""

    data: bytes
    events: list[tuple[str, int, int]]

    def complete(self, length: int) -> list[str]:
        """The events that lie wholly in the first bytes."""
        return [name for name, _, end in self.events if end <= length]

    def others(self, place: int) -> list[str]:
        """The events that do not contain this place."""
        return [name for name, begin, end in self.events if not begin <= place < end]


def _events(count: int) -> list[dict[str, Any]]:
    made = (_op, _call, _kernel, _moment)
    return [made[i % len(made)](i) for i in range(count)]


def _op(i: int) -> dict[str, Any]:
    args = {
        "External id": i,
        "Input Dims": [[i, 2], []],
        "Call stack": "a.py(1): f",
        "mine": {"k": [1, {"x": None}]},
    }
    return event("cpu_op", f"op {i}", 10 * i + 0.125, 9.5, args=args)


def _call(i: int) -> dict[str, Any]:
    return event("cuda_runtime", f"call {i}", 10 * i + 1, 2, args={"correlation": i + 1, "cbid": 211})


def _kernel(i: int) -> dict[str, Any]:
    args: dict[str, Any] = {"correlation": i + 1, "grid": [1, 2, 3], "blocks per SM": 0.5}
    return on_stream("kernel", f"kernel {i}", 10 * i + 3, 4, **args)


def _moment(i: int) -> dict[str, Any]:
    return event("cpu_instant_event", f"moment {i}", 10 * i, 0, ph="i", s="t")


def document(count: int) -> Document:
    """A Kineto document of so many events, one a line."""
    text = b'{\n"schemaVersion": 1,\n"deviceProperties": [{"id": 0, "name": "GPU"}],\n"traceEvents": [\n'
    places = []
    for made in _events(count):
        begin = len(text)
        text += json.dumps(made).encode()
        places.append((made["name"], begin, len(text)))
        text += b",\n"
    text = text[:-2] + b'\n],\n"distributedInfo": {"rank": 1, "world_size": 2},\n"traceName": "x.json"\n}\n'
    return Document(text, places)
