"""Lists, caches and graphs that grow from pass to pass, one small history for each way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.snapshot.causes import Cause, Truth, check, list_causes
from tests.builders.oom_jobs import (
    BATCH,
    CALLS,
    EMBEDS,
    HEAD,
    LOSS,
    MAKES,
    Loop,
    at,
    in_function,
)
from tests.builders.snapshots import MIB, MODEL, TORCH, Job, frame, making, script


def kept_outputs() -> tuple[Job, Truth]:
    """A list of the head's outputs, to which the training step appends."""
    job = Loop()
    for _ in range(12):
        job.step(keep=-1)
    job.forward(4 * MIB, layers=2)
    return job.stop(), Truth("kept", {HEAD, CALLS}, 12 * 4 * MIB)


def kept_by_a_hook() -> tuple[Job, Truth]:
    """A hook stores the output of a layer as soon as it is there; the step that fails is in the backward pass."""
    job = Loop()
    for _ in range(60):
        job.step(keep=0)
    job.batch()
    job.forward(4 * MIB)
    return job.stop(frames=[]), Truth("kept", {EMBEDS, CALLS}, 61 * 4 * MIB)


def kept_by_a_callback() -> tuple[Job, Truth]:
    """A callback clones the result at the end of each step."""
    job = Loop()
    for _ in range(12):
        job.step()
        job.take(24 * MIB, [*script(60, "on_step_end"), *at(30)])
    job.batch()
    return job.stop(), Truth("kept", {60}, 12 * 24 * MIB)


def kept_as_an_attribute() -> tuple[Job, Truth]:
    """A method of the model stores a tensor in a list of the model when it makes it."""
    job = Loop()
    for number in range(15):
        x, first = job.batch(), job.take(24 * MIB, in_function(70, "remember", at(CALLS)))
        held = job.forward(4 * MIB)
        assert first
        if number < 14:
            job.backward(held)
            job.update()
            job.free(x, frames=at(BATCH))
    return job.stop(), Truth("kept", {70, CALLS}, 15 * 24 * MIB)


def cache_by_key() -> tuple[Job, Truth]:
    """A table for each length that occurs, also for that of the step that fails."""
    job, total = Loop(), 0
    for number in range(20):
        x = job.batch()
        if number % 3 != 1:
            total += (8 + number) * MIB
            job.take((8 + number) * MIB, in_function(70, "table", at(CALLS)))
        held = job.forward(4 * MIB)
        if number < 19:
            job.backward(held)
            job.update()
            job.free(x, frames=at(BATCH))
    return job.stop(), Truth("kept", {70, CALLS}, total)


def module_used_by_two_lines() -> tuple[Job, Truth]:
    """Training is sound; the validation keeps its graphs."""
    job = Loop()
    for _ in range(10):
        job.step()
        job.take(MIB, [*script(50, "validate"), *script(91)])
        job.forward(4 * MIB, [*script(51, "validate"), *script(91)])
    job.batch()
    job.forward(4 * MIB, layers=2)
    return job.stop(), Truth("kept", {51}, 10 * (10 * 4 + 1) * MIB)


def keys_and_values_of_each_token() -> tuple[Job, Truth]:
    """Generation appends keys and values of every layer to lists."""
    job = Loop()
    for _ in range(20):
        job.free(job.take(MIB, at(BATCH)), frames=at(BATCH))
        for line in (71, 72):
            job.take(4 * MIB, [frame("attend", MODEL, line), *at(CALLS)])
    return job.stop(), Truth("kept", {71, 72}, 40 * 4 * MIB)


def prefetched_batches() -> tuple[Job, Truth]:
    """A loader that copies batches on a stream of its own, faster than they are used, and fails there."""
    job = Loop()
    for _ in range(16):
        job.step()
        job.take(20 * MIB, [*script(80, "prefetch"), *script(81, "run")])
    return job.stop(frames=[*script(80, "prefetch"), *script(81, "run")]), Truth("kept", {80}, 16 * 20 * MIB)


def cut_history() -> tuple[Job, Truth]:
    """The history reaches back over the last quarter of the steps only; blocks still have their stacks."""
    job, truth = kept_by_a_callback()
    del job.events[: len(job.events) // 2]
    return job, truth


def without_history() -> tuple[Job, Truth]:
    job, truth = kept_by_a_callback()
    del job.events[:-1]
    return job, truth._replace(cause="unknown")


def stacks_of_allocations_only() -> tuple[Job, Truth]:
    """With context="alloc" a release has the stack of its allocation."""
    job, truth = kept_outputs()
    stacks = {event.get("addr"): event["frames"] for event in job.events if event["action"] == "alloc"}
    for event in job.events:
        if event["action"].startswith("free"):
            event["frames"] = stacks[event["addr"]]
    return job, truth


def frames_of_cpp() -> tuple[Job, Truth]:
    """With stacks="all" every frame of Python has some of C++ around it, and the backward pass has those alone."""
    job, truth = kept_outputs()
    outer = {"name": "_PyEval_EvalFrameDefault", "filename": "??", "line": 0}
    engine = {"name": "torch::autograd::Engine::thread_main", "filename": "engine.cpp", "line": 1}
    inner = {
        "name": "c10::cuda::CUDACachingAllocator::malloc",
        "filename": "CUDACachingAllocator.cpp",
        "line": 3,
    }
    mixed = {
        id(each): [inner, *(part for one in each for part in (one, outer))] if each else [inner, engine]
        for each in _stacks(job)
    }
    for event in job.events:
        event["frames"] = mixed[id(event["frames"])]
    for block in job.live.values():
        block["frames"] = mixed[id(block["frames"])]
    return job, truth


def _stacks(job: Job) -> list[list[dict[str, object]]]:
    return [event["frames"] for event in job.events]


def copies_of_the_weights() -> tuple[Job, Truth]:
    """The best weights so far are copied into a list after every epoch."""
    job = Loop()
    copy = [
        frame("__deepcopy__", TORCH + "nn/parameter.py", 3),
        frame("deepcopy", "/usr/lib/python3.12/copy.py", 1),
    ]
    for _ in range(8):
        job.steps(3)
        for _ in range(4):
            job.take(8 * MIB, [*copy, *script(95)])
    job.batch()
    return job.stop(), Truth("kept", {95}, 32 * 8 * MIB)


def sum_of_losses() -> tuple[Job, Truth]:
    """A sum of losses keeps each graph: input, activations, and what the loss has saved."""
    job = Loop().steps(2)
    for _ in range(8):
        job.batch(4 * MIB)
        job.forward(4 * MIB)
        job.take(6 * MIB, at(LOSS))
    job.batch(4 * MIB)
    job.forward(4 * MIB, layers=1)
    return job.stop(), Truth("kept", {CALLS}, 8 * (4 + 40 + 6) * MIB)


def graph_of_gradients() -> tuple[Job, Truth]:
    """backward(create_graph=True): tensors of the backward pass, which has no line, are kept as well."""
    job = Loop()
    for _ in range(9):
        job.batch(MIB)
        job.forward(4 * MIB)
        for _ in range(10):
            job.take(3 * MIB, [])
        job.free(job.take(MIB, at(LOSS)), frames=at(LOSS))
    return job.stop(), Truth("kept", {CALLS}, 9 * (1 + 40 + 30) * MIB)


def a_leak_that_leaves_some_pieces() -> tuple[Job, Truth]:
    """The request would fit if the free pieces were one, and the next one would not."""
    job = Loop()
    for _ in range(20):
        job.step()
        job.split(job.take(17 * MIB, script(29, "record")), 20 * MIB)
    return job.stop(50 * MIB), Truth("kept", {29}, 20 * 17 * MIB)


def two_lists() -> tuple[Job, Truth]:
    """One list was filled in the first steps, and is not what grows in the end."""
    job = Loop()
    for number in range(30):
        job.step()
        if number < 5:
            job.take(20 * MIB, at(41))
        if number > 10:
            job.take(20 * MIB, at(42))
    job.batch()
    return job.stop(), Truth("kept", {42}, 19 * 20 * MIB)


def blocks_that_are_larger_than_asked() -> tuple[Job, Truth]:
    """The allocator does not split off a small rest; the owner of a tensor counts what he asked for."""
    job, truth = kept_by_a_callback()
    for block in job.live.values():
        block["size"] += MIB
    return job, truth


def unwound() -> tuple[Job, Truth]:
    """The snapshot was taken when the function, its list and the batch were gone."""
    job, truth = kept_by_a_callback()
    steps = [address for address, block in job.live.items() if block["frames"] != making(script(MAKES))]
    for address in steps[::2]:
        job.free(address, frames=script(99))
    return job, truth


@pytest.mark.parametrize("make", list_causes(globals()), ids=lambda make: make.__name__)
def test_the_cause_comes_first(make: Cause, tmp_path: Path) -> None:
    check(*make(), tmp_path)
