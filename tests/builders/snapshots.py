"""Memory snapshots as PyTorch writes them, made by a small allocator: each request is a segment of its own unless it says otherwise."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

MIB = 1 << 20
SCRIPT = "/home/me/train.py"
MODEL = "/home/me/model.py"
TORCH = "/usr/lib/python3/site-packages/torch/"
_CALL = {"name": "_call_impl", "filename": TORCH + "nn/modules/module.py", "line": 1775}


def frame(function: str, file: str, line: int) -> dict[str, Any]:
    """One frame."""
    return {"name": function, "filename": file, "line": line}


def script(line: int, function: str = "<module>") -> list[dict[str, Any]]:
    """The stack of a line of the script."""
    return [frame(function, SCRIPT, line)]


def in_model(line: int, at: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stack of a line of the model that a line of the script calls."""
    return [
        frame("linear", TORCH + "nn/functional.py", 100),
        _CALL,
        frame("forward", MODEL, line),
        _CALL,
        *at,
    ]


def making(at: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stack of weights that `.to(device)` makes."""
    module = TORCH + "nn/modules/module.py"
    return [frame("convert", module, 1), frame("_apply", module, 2), frame("to", module, 3), *at]


def stepping(at: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stack of an optimizer's state."""
    file = TORCH + "optim/adamw.py"
    return [frame("_init_group", file, 10), frame("step", file, 20), *at]


class Job:
    """A process that allocates on one device."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.live: dict[int, dict[str, Any]] = {}
        self.next = 0x7F0000000000
        self.time = 1_700_000_000_000_000
        self.pieces: list[dict[str, Any]] = []
        self.expandable = False

    def _event(self, action: str, size: int, frames: list[Any], **more: Any) -> None:
        self.time += 10
        self.events.append(
            {"action": action, "size": size, "stream": 0, "time_us": self.time, "frames": frames, **more}
        )

    def take(self, size: int, frames: list[Any]) -> int:
        """The address of so many bytes."""
        address = self.next
        self.next += -(-size // (2 * MIB)) * 2 * MIB
        self._event("alloc", size, frames, addr=address)
        rounded = -(-size // 512) * 512
        self.live[address] = {
            "address": address, "size": rounded, "requested_size": size, "state": "active_allocated", "frames": frames,
        }  # fmt: skip
        return address

    def free(self, *addresses: int, frames: list[Any] | None = None) -> None:
        """Release, by default in the backward pass, which has no stack."""
        for address in addresses:
            size = self.live.pop(address)["requested_size"]
            self._event("free_requested", size, frames or [], addr=address)
            self._event("free_completed", size, frames or [], addr=address)

    def fail(self, size: int, frames: list[Any]) -> None:
        """A request that does not fit."""
        self._event("oom", size, frames, device_free=0)

    def snapshot(self) -> dict[str, Any]:
        """As torch.cuda.memory._snapshot() returns it."""
        segments = [_segment(block["address"], block["size"], [block]) for block in self.live.values()]
        together = [{**each, "is_expandable": self.expandable} for each in (*segments, *self.pieces)]
        return {
            "segments": together,
            "device_traces": [self.events],
            "allocator_settings": {"expandable_segments": self.expandable},
            "external_annotations": [],
        }

    def split(self, kept: int, size: int) -> None:
        """Put a live block into a segment of so many bytes, whose rest is free."""
        block = self.live.pop(kept)
        rest = {"address": kept + block["size"], "size": size - block["size"], "requested_size": 0, "state": "inactive", "frames": []}  # fmt: skip
        self.pieces.append(_segment(kept, size, [block, rest]))

    def write(self, path: Path) -> str:
        """The snapshot as a file."""
        path.write_bytes(pickle.dumps(self.snapshot()))
        return str(path)


def _segment(address: int, size: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    used = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
    return {
        "device": 0, "address": address, "total_size": size, "allocated_size": used, "active_size": used,
        "requested_size": used, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
        "is_expandable": False, "frames": [], "blocks": blocks,
    }  # fmt: skip


def training(steps: int, leak: bool = False, weights: int = 64 * MIB, batch: int = 16 * MIB) -> Job:
    """A loop: weights at line 5, activations at line 10, backward, Adam's state at line 12; with `leak` activations stay."""
    job = Job()
    for _ in range(4):
        job.take(weights // 4, making(script(5)))
    for step in range(steps):
        held = [job.take(batch, in_model(line, script(10))) for line in (21, 22, 22, 23)]
        held.append(job.take(4096, script(10)))
        gradients = [job.take(weights // 4, []) for _ in range(4)]
        if not leak:
            job.free(*held)
        if step == 0:
            for _ in range(8):
                job.take(weights // 4, stepping(script(12)))
        job.free(*gradients, frames=script(13))
    return job
