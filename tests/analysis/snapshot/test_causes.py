"""What makes jobs run out of memory besides lists that grow, one small history for each way."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from tests.analysis.snapshot.causes import Cause, Truth, check, list_causes
from tests.builders.oom_jobs import (
    BATCH,
    BLOCK,
    CALLS,
    HEAD,
    LOSS,
    MAKES,
    UPDATES,
    Loop,
    at,
    recomputing,
)
from tests.builders.snapshots import MIB, TORCH, Job, frame, in_model, making, script, stepping


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


def pieces_between_what_stays() -> tuple[Job, Truth]:
    """Every other shard stays, and a large table finds no place, though twice as much is free."""
    job = Loop()
    for _ in range(40):
        job.step()
        job.split(job.take(10 * MIB, script(29, "shard")), 20 * MIB)
    return job.stop(200 * MIB, script(73, "infer")), Truth("fragmentation", {29, 73}, 400 * MIB)


def pieces_beside_what_the_failing_call_made() -> tuple[Job, Truth]:
    """More is free beside a tensor of the running call than between those that stay, and it is not in the way for long."""
    job = Loop()
    for _ in range(40):
        job.step()
        job.split(job.take(10 * MIB, script(29, "shard")), 20 * MIB)
    job.split(job.take(60 * MIB, script(72, "infer")), 900 * MIB)
    return job.stop(1000 * MIB, script(73, "infer")), Truth("fragmentation", {29}, (400 + 840) * MIB)


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


@pytest.mark.parametrize("make", list_causes(globals()), ids=lambda make: make.__name__)
def test_the_cause_comes_first(make: Cause, tmp_path: Path) -> None:
    check(*make(), tmp_path)
