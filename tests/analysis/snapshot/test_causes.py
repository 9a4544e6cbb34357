"""What makes jobs run out of memory, one small history for each way: the cause first, by a line of it, with its bytes within 2 %."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from stepscope.analysis.snapshot.culprit import name_culprits
from stepscope.analysis.snapshot.explain import explain
from stepscope.formats import read
from stepscope.formats.source import Source
from tests.builders.oom_jobs import (
    BATCH,
    BLOCK,
    CALLS,
    EMBEDS,
    HEAD,
    LOSS,
    MAKES,
    UPDATES,
    Loop,
    at,
    in_function,
    recomputing,
)
from tests.builders.snapshots import MIB, MODEL, TORCH, Job, frame, in_model, making, script, stepping


class Truth(NamedTuple):
    """What was planted."""

    cause: str
    lines: set[int]
    bytes: int


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


def full_queue() -> tuple[Job, Truth]:
    """A queue of fixed length is full; the batch is what is too large."""
    job, queue = Loop(), deque[int]()
    for _ in range(30):
        job.step()
        queue.append(job.take(8 * MIB, at(30)))
        if len(queue) > 6:
            job.free(queue.popleft(), frames=at(30))
    job.batch()
    job.forward(40 * MIB, layers=3)
    return job.stop(), Truth("activation", {CALLS}, 7 * 40 * MIB)


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


def too_large_with_checkpointing() -> tuple[Job, Truth]:
    """The inputs of blocks stay, and one block is computed again when it fails."""
    job = Loop(layers=8)
    for size in (4, 4, 4, 48):
        job.batch()
        held = [job.take(size * MIB, in_model(BLOCK, at(CALLS))) for _ in range(8)]
        if size == 4:
            again = [job.take(size * MIB, recomputing(BLOCK)) for _ in range(4)]
            job.free(*again)
            job.backward(held)
            job.update()
    job.take(48 * MIB, recomputing(BLOCK))
    return job.stop(frames=recomputing(BLOCK)), Truth("activation", {CALLS, BLOCK}, 8 * 48 * MIB)


def too_large_with_autocast() -> tuple[Job, Truth]:
    """Copies of the weights in half precision live as long as the forward pass."""
    job = Loop().steps(3)
    job.batch()
    copies = [job.take(4 * MIB, in_model(BLOCK, at(CALLS))) for _ in range(4)]
    held = job.forward(40 * MIB, layers=4)
    return job.stop(), Truth("activation", {CALLS}, len(copies) * 4 * MIB + len(held) * 40 * MIB)


def too_large_with_buckets() -> tuple[Job, Truth]:
    """Buckets of DistributedDataParallel are as large as the weights, and no second model."""
    job = Loop(32 * MIB)
    ddp = TORCH + "nn/parallel/distributed.py"
    for _ in range(4):
        job.take(32 * MIB, [frame("_ddp_init_helper", ddp, 1), frame("__init__", ddp, 2), *script(7)])
    job.steps(3)
    job.batch()
    job.forward(60 * MIB, layers=3)
    return job.stop(), Truth("activation", {CALLS}, 7 * 60 * MIB)


def keys_and_values_of_each_token() -> tuple[Job, Truth]:
    """Generation appends keys and values of every layer to lists."""
    job = Loop()
    for _ in range(20):
        job.free(job.take(MIB, at(BATCH)), frames=at(BATCH))
        for line in (71, 72):
            job.take(4 * MIB, [frame("attend", MODEL, line), *at(CALLS)])
    return job.stop(), Truth("kept", {71, 72}, 40 * 4 * MIB)


def one_long_sequence() -> tuple[Job, Truth]:
    """All steps are alike but the last one."""
    job = Loop().steps(12)
    job.batch(16 * MIB)
    job.forward(64 * MIB, layers=3)
    return job.stop(), Truth("activation", {CALLS}, 7 * 64 * MIB)


def first_step() -> tuple[Job, Truth]:
    """Layers alike, one behind the other, are no passes: nothing was ever released."""
    job = Loop(layers=12)
    job.batch()
    held = [job.take(40 * MIB, in_model(BLOCK, at(CALLS))) for _ in range(16)]
    return job.stop(), Truth("activation", {CALLS}, len(held) * 40 * MIB)


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


def compiled_model() -> tuple[Job, Truth]:
    """Code that the compiler wrote allocates; it is not the user's."""
    job = Loop()
    code = [
        frame("call", "/tmp/torchinductor_me/ab/cabcd.py", 77),
        frame("_fn", TORCH + "_dynamo/eval_frame.py", 9),
    ]
    held = []
    for size in (4, 4, 4, 60):
        job.batch()
        held = [job.take(size * MIB, [*code, *at(CALLS)]) for _ in range(8)]
        if size == 4:
            job.backward(held)
            job.update()
    return job.stop(frames=[*code, *at(CALLS)]), Truth("activation", {CALLS}, len(held) * 60 * MIB)


def failing_backward() -> tuple[Job, Truth]:
    """The backward pass needs more; what the forward pass left is the cause."""
    job = Loop().steps(3)
    job.batch()
    job.forward(40 * MIB)
    for _ in range(2):
        job.take(40 * MIB, [])
    return job.stop(frames=[]), Truth("activation", {CALLS}, 10 * 40 * MIB)


def failing_update() -> tuple[Job, Truth]:
    """State of the optimizer is made with the first step; half of it is there, less than weights."""
    job = Loop(64 * MIB, layers=8)
    job.batch()
    job.backward(job.forward(4 * MIB))
    for _ in range(7):
        job.take(64 * MIB, stepping(at(UPDATES)))
    return job.stop(frames=stepping(at(UPDATES))), Truth("optimizer state", {UPDATES}, 7 * 64 * MIB)


def large_logits() -> tuple[Job, Truth]:
    """The loss copies the logits twice; all three lines are of one step."""
    job = Loop()
    for size in (2, 2, 2, 100):
        job.batch()
        held = [
            job.take(2 * MIB, in_model(BLOCK, at(CALLS))),
            job.take(size * MIB, in_model(HEAD, at(CALLS))),
        ]
        held += [
            job.take(size * MIB, [frame("cross_entropy", TORCH + "nn/functional.py", 3), *at(LOSS)])
            for _ in range(2)
        ]
        if size == 2:
            job.backward(held)
            job.update()
    return job.stop(frames=at(LOSS)), Truth("activation", {CALLS, LOSS}, 302 * MIB)


def second_model() -> tuple[Job, Truth]:
    """A frozen teacher is half as large as the state of the optimizer."""
    job = Loop(32 * MIB, layers=8)
    for _ in range(6):
        job.take(50 * MIB, making(script(8)))
    job.steps(3)
    job.batch()
    job.forward(8 * MIB, layers=2)
    return job.stop(), Truth("parameter", {8}, 300 * MIB)


def average_of_the_weights() -> tuple[Job, Truth]:
    """A copy has the sizes of the model, and only one of them is trained."""
    job = Loop(32 * MIB, layers=8)
    copy = [
        frame("__deepcopy__", TORCH + "nn/parameter.py", 3),
        frame("deepcopy", "/usr/lib/python3.12/copy.py", 1),
    ]
    for _ in range(8):
        job.take(32 * MIB, [*copy, *script(9)])
    job.steps(3)
    job.batch()
    return job.stop(), Truth("parameter", {9}, 256 * MIB)


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


def pieces_between_what_stays() -> tuple[Job, Truth]:
    """Every other shard stays, and a large table finds no place, though twice as much is free."""
    job = Loop()
    for _ in range(40):
        job.step()
        job.split(job.take(10 * MIB, script(29, "shard")), 20 * MIB)
    return job.stop(200 * MIB, script(73, "infer")), Truth("fragmentation", {29, 73}, 400 * MIB)


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


def unrolled_cell() -> tuple[Job, Truth]:
    """A recurrent cell is called for each element of the sequence; the step that fails has longer ones."""
    job = Loop()
    for size in (2, 2, 2, 20):
        job.batch()
        held = [job.take(size * MIB, in_model(BLOCK, at(CALLS))) for _ in range(24)]
        if size == 2:
            job.backward(held)
            job.update()
    return job.stop(), Truth("activation", {CALLS}, 24 * 20 * MIB)


def accumulated_gradients() -> tuple[Job, Truth]:
    """Several batches for one update: gradients stay between them, as they should."""
    job = Loop()
    for _ in range(4):
        for _ in range(4):
            x = job.batch()
            job.backward(job.forward(4 * MIB))
            job.free(x, frames=at(BATCH))
        job.update()
    job.batch()
    job.forward(40 * MIB, layers=3)
    return job.stop(), Truth("activation", {CALLS}, 7 * 40 * MIB)


def too_large_a_model() -> tuple[Job, Truth]:
    """It fails while the layers are made."""
    job = Loop(32 * MIB, layers=20)
    return job.stop(frames=making(script(MAKES))), Truth("parameter", {MAKES}, 20 * 32 * MIB)


def blocks_that_are_larger_than_asked() -> tuple[Job, Truth]:
    """The allocator does not split off a small rest; the owner of a tensor counts what he asked for."""
    job, truth = kept_by_a_callback()
    for block in job.live.values():
        block["size"] += MIB
    return job, truth


def pairs_of_points() -> tuple[Job, Truth]:
    """Two lines of one function make all pairs; one of them is released when the function returns."""
    job = Loop()
    for size in (4, 4, 4, 200):
        job.batch()
        held = job.forward(2 * MIB)
        offset = job.take(size * MIB, [*script(61, "chamfer"), *at(LOSS)])
        squared = job.take(size * MIB, [*script(62, "chamfer"), *at(LOSS)])
        if size == 4:
            job.free(squared, frames=at(LOSS))
            job.backward([*held, offset])
            job.update()
    return job.stop(frames=[*script(63, "chamfer"), *at(LOSS)]), Truth("activation", {61, 62}, 400 * MIB)


def unwound() -> tuple[Job, Truth]:
    """The snapshot was taken when the function, its list and the batch were gone."""
    job, truth = kept_by_a_callback()
    steps = [address for address, block in job.live.items() if block["frames"] != making(script(MAKES))]
    for address in steps[::2]:
        job.free(address, frames=script(99))
    return job, truth


def optimizer_of_the_script() -> tuple[Job, Truth]:
    """A class of the user with three tensors for each weight, made by three lines of its step."""
    job = Loop(16 * MIB, layers=8).steps(2)
    for address in job.state:
        job.free(address, frames=at(UPDATES))
    wrapper = frame("wrapper", TORCH + "optim/optimizer.py", 4)
    for _ in range(8):
        for line in (75, 76, 77):
            job.take(16 * MIB, [*script(line, "step"), wrapper, *at(UPDATES)])
    job.batch()
    return job.stop(), Truth("optimizer state", {75, 76, 77, UPDATES}, 24 * 16 * MIB)


def momentum() -> tuple[Job, Truth]:
    """SGD clones the gradient where it updates the weights; two lines call it."""
    job = Loop(64 * MIB)
    job.batch()
    job.backward(job.forward(MIB))
    sgd = TORCH + "optim/sgd.py"
    for _ in range(4):
        job.take(64 * MIB, [frame("_multi_tensor_sgd", sgd, 9), frame("step", sgd, 2), *at(UPDATES)])
    for _ in range(2):
        job.take(40 * MIB, [frame("_multi_tensor_sgd", sgd, 9), frame("step", sgd, 2), *script(95, "other")])
    job.free(*job.gradients, frames=at(UPDATES + 1))
    return job.stop(), Truth("optimizer state", {UPDATES}, (4 * 64 + 2 * 40) * MIB)


def loss_that_an_optimizer_calls() -> tuple[Job, Truth]:
    """With a closure the optimizer is around the model; activations are the cause."""
    job = Loop()
    around = [*script(26, "closure"), frame("step", TORCH + "optim/lbfgs.py", 3), *at(UPDATES)]
    for size in (2, 2, 2, 60):
        held = job.forward(size * MIB, around, layers=3)
        if size == 2:
            job.backward(held)
    return job.stop(frames=in_model(BLOCK, around)), Truth("activation", {26}, 7 * 60 * MIB)


def one_request() -> tuple[Job, Truth]:
    """Somebody asks for far more than there is."""
    job = Loop().steps(2)
    return job.stop(4000 * MIB, at(LOSS)), Truth("request", {LOSS}, 4000 * MIB)


def joined_segments() -> tuple[Job, Truth]:
    """Segments that can grow; the batch is too large."""
    job, truth = one_long_sequence()
    job.expandable = True
    return job, truth


CASES: list[Callable[[], tuple[Job, Truth]]] = [
    each
    for each in list(globals().values())
    if callable(each) and getattr(each, "__annotations__", {}).get("return") == "tuple[Job, Truth]"
]


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_the_cause_comes_first(make: Callable[[], tuple[Job, Truth]], tmp_path: Path) -> None:
    job, truth = make()
    (found,) = explain(read(Source(job.write(tmp_path / "snapshot.pickle"))))
    first = name_culprits(found)[0]
    assert first.cause == truth.cause
    assert first.where[0].line in truth.lines
    assert first.bytes == pytest.approx(truth.bytes, rel=0.02)
