"""Where steps end: the rules on their own, and the same in real frameworks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stepscope.capture.loop.loop import Loop
from tests.capture.running import needs, told_by_module

STEPS = 12


class Told:
    """Plays a loop: `f` fetches a batch, a capital letter is an update of that optimizer, `(` and `)` a marker, `!` a call."""

    def __init__(self, optimizers: str = "") -> None:
        self.steps: list[int] = []
        self.begun = 0
        self.at = 0
        self.loop = Loop(self._begin, lambda: self.steps.append(self.at))
        for letter in optimizers:
            self.loop.optimizer_made(ord(letter))

    def _begin(self) -> None:
        self.begun += 1
        self.steps = []

    def play(self, events: str) -> list[int]:
        for event in events:
            self._one(event)
            self.at += 1
        return self.steps

    def _one(self, event: str) -> None:
        acts: dict[str, Callable[[], Any]] = {
            "f": self.loop.fetching,
            "(": self.loop.marker_begins,
            ")": self.loop.marker_ends,
            "!": self._call,
        }
        if event in acts:
            acts[event]()
        else:
            self.loop.updating(ord(event))
            self.loop.updated(ord(event))

    def _call(self) -> None:
        if self.loop.called():
            self.steps.append(self.at)


@pytest.mark.parametrize(
    ("optimizers", "events", "steps"),
    [
        pytest.param("A", "fAfAfAf", [2, 4, 6], id="a step ends where the next batch is asked for"),
        pytest.param("A", "AAA", [0, 1, 2], id="without a loader it ends with the update"),
        pytest.param("A", "ffffAffffAf", [5, 10], id="gradient accumulation"),
        pytest.param("AB", "fABfABf", [3, 6], id="two optimizers"),
        pytest.param("AB", "ABABAB", [1, 3, 5], id="two optimizers without a loader"),
        pytest.param("AB", "fABfAfAfABf", [3, 5, 7, 10], id="one optimizer more often"),
        pytest.param("AB", "AAABAA", [1, 1, 2, 4, 5], id="one more often, without a loader"),
        pytest.param("ABC", "ABABAB", [2, 3, 5], id="one optimizer is never used"),
        pytest.param("A", "fAAAfAAAf", [2, 2, 3, 5, 6, 7], id="several updates a batch"),
        pytest.param("A", "fAfAffffAf", [2, 4, 9], id="an evaluation belongs to the step it is in"),
        pytest.param("", "ffff", [1, 2, 3], id="batches without an optimizer"),
        pytest.param("A", "f(AA)f(AA)", [4, 9], id="markers are surer than updates"),
        pytest.param("A", "AA!AA!", [2, 5], id="calls are surer than all"),
        pytest.param("", "(!)(!)", [1, 4], id="calls inside markers"),
    ],
)
def test_where_steps_end(optimizers: str, events: str, steps: list[int]) -> None:
    assert Told(optimizers).play(events) == steps


def test_an_optimizer_after_batches_begins_the_count_anew() -> None:
    told = Told()
    told.play("fff")
    told.loop.optimizer_made(ord("A"))
    assert told.play("fAfA") == [5]
    assert told.begun == 3


def test_batches_when_no_update_is_ever_heard_of() -> None:
    assert len(Told("A").play("f" * 74)) == 10


def test_other_threads_are_not_the_loop() -> None:
    told = Told("A")
    told.play("fAfA")
    other = threading.Thread(target=told.play, args=("fAfAf",))
    other.start()
    other.join()
    assert told.steps == [2]


def check(found: dict[str, Any], names: Sequence[str], source: str) -> None:
    assert {name: (found[name]["steps"], found[name]["source"]) for name in names} == dict.fromkeys(
        names, (STEPS, source)
    )


@needs("torch")
def test_torch_loops() -> None:
    names = [
        "loader",
        "no_loader",
        "accumulation",
        "gan",
        "gan_no_loader",
        "critic",
        "many_optimizers",
        "compiled",
    ]
    found = told_by_module("loop_counts", STEPS, *names, "compiled_step", "inference")
    check(found, names, "optimizer")
    check(found, ["inference"], "loader")
    assert found["compiled_step"]["steps"] >= STEPS


@needs("jax", "torch")
def test_jax_loops() -> None:
    found = told_by_module("loop_counts", STEPS, "jax_markers", "jax_loader")
    check(found, ["jax_markers"], "marker")
    check(found, ["jax_loader"], "loader")


@needs("tensorflow", "keras")
def test_tensorflow_loops() -> None:
    found = told_by_module("loop_counts", STEPS, "keras", "tf_data", KERAS_BACKEND="tensorflow")
    check(found, ["keras"], "marker")
    check(found, ["tf_data"], "loader")
