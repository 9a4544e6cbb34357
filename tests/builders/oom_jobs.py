"""Training loops that run out of memory, as histories of an allocator: each does what a script of that kind does, with round sizes."""

from __future__ import annotations

from typing import Any

from tests.builders.snapshots import MIB, MODEL, TORCH, Job, frame, in_model, making, script, stepping

Frames = list[dict[str, Any]]
MAKES, BATCH, CALLS, LOSS, UPDATES = 5, 20, 21, 22, 24  # lines of train.py
EMBEDS, BLOCK, HEAD = 31, 33, 35  # lines of model.py


def at(line: int) -> Frames:
    """A line of the function that trains."""
    return [*script(line, "train"), *script(90)]


def in_function(line: int, function: str, at: Frames) -> Frames:
    """A line of a function of the model's file that is not a module."""
    return [frame(function, MODEL, line), *in_model(BLOCK, at)[1:]]


def recomputing(line: int) -> Frames:
    """A layer that the backward pass computes again: there is no line of the script in its stack."""
    file = TORCH + "utils/checkpoint.py"
    return [*in_model(line, [])[:3], frame("recompute_fn", file, 7), frame("unpack_hook", file, 9)]


class Loop(Job):
    """Weights of 4 × 8 MiB at line 5; the steps come with `step`."""

    def __init__(self, weights: int = 8 * MIB, layers: int = 4) -> None:
        super().__init__()
        self.weights, self.layers = weights, layers
        self.gradients: list[int] = []
        self.state: list[int] = []
        for _ in range(layers):
            self.take(weights, making(script(MAKES)))

    def batch(self, size: int = MIB) -> int:
        """The input of a step."""
        return self.take(size, at(BATCH))

    def forward(self, size: int, caller: Frames | None = None, layers: int | None = None) -> list[int]:
        """An embedding, two tensors for each layer, and the head; a temporary tensor in each layer."""
        caller = at(CALLS) if caller is None else caller
        held = [self.take(size, in_model(EMBEDS, caller))]
        for _ in range(self.layers if layers is None else layers):
            held.append(self.take(size, in_model(BLOCK, caller)))
            self.free(self.take(size // 2, in_model(BLOCK + 1, caller)), frames=in_model(BLOCK + 1, caller))
            held.append(self.take(size, in_model(BLOCK, caller)))
        if layers is None:
            held.append(self.take(size, in_model(HEAD, caller)))
        return held

    def backward(self, held: list[int]) -> None:
        """Gradients of all weights; what the forward pass holds is released."""
        for number in range(self.layers):
            passed_on = self.take(3 * MIB, [])
            if len(self.gradients) <= number:
                self.gradients.append(self.take(self.weights, []))
            self.free(passed_on)
        self.free(*held)

    def update(self) -> None:
        """Adam: state with the first step; gradients are released."""
        if not self.state:
            self.state = [self.take(self.weights, stepping(at(UPDATES))) for _ in range(2 * self.layers)]
        self.free(*self.gradients, frames=at(UPDATES + 1))
        self.gradients = []

    def step(self, size: int = 4 * MIB, keep: int | None = None) -> list[int]:
        """A whole step; `keep` is the number of the tensor of the forward pass that something keeps."""
        x, held = self.batch(), self.forward(size)
        loss = self.take(512, at(LOSS))
        kept = [held.pop(keep)] if keep is not None else []
        self.backward([*held, loss])
        self.update()
        self.free(x, frames=at(BATCH))
        return kept

    def steps(self, count: int, size: int = 4 * MIB) -> Loop:
        """Steps that keep nothing."""
        for _ in range(count):
            self.step(size)
        return self

    def stop(self, asked: int = 64 * MIB, frames: Frames | None = None) -> Loop:
        """The request that fails, by default in the model."""
        self.fail(asked, in_model(BLOCK, at(CALLS)) if frames is None else frames)
        return self
