"""Who holds the memory: jobs with a planted cause, which is named first, with its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analysis.snapshot.culprit import Culprit, name_culprits
from stepscope.analysis.snapshot.explain import Explained, explain
from stepscope.formats import read
from stepscope.formats.source import Source
from tests.builders.snapshots import (
    MIB,
    MODEL,
    SCRIPT,
    Job,
    frame,
    in_model,
    making,
    script,
    stepping,
    training,
)


def explained(job: Job, folder: Path) -> Explained:
    """The one device of the job."""
    (found,) = explain(read(Source(job.write(folder / "snapshot.pickle"))))
    return found


def first(job: Job, folder: Path) -> Culprit:
    """What is named first."""
    return name_culprits(explained(job, folder))[0]


def test_a_list_that_keeps_activations(tmp_path: Path) -> None:
    job = training(12, leak=True)
    job.take(16 * MIB, in_model(21, script(10)))
    job.fail(16 * MIB, in_model(22, script(10)))
    found = first(job, tmp_path)
    assert (found.cause, found.where[0].line) == ("kept", 10)
    assert found.bytes == 12 * (64 * MIB + 4096)
    assert "from 12 earlier passes, 64.0 MiB each" in found.text


def test_too_large_a_batch_is_no_growth(tmp_path: Path) -> None:
    job = training(4)
    for line in (21, 22, 22):
        job.take(400 * MIB, in_model(line, script(10)))
    job.fail(400 * MIB, in_model(23, script(10)))
    found = explained(job, tmp_path)
    culprit = name_culprits(found)[0]
    assert found.kept == []
    assert (culprit.cause, culprit.bytes, culprit.where[0].line) == ("activation", 1200 * MIB, 10)
    assert [change.code for change in found.changes if change.fits] == ["smaller-batch", "recompute"]


def test_state_of_the_optimizer(tmp_path: Path) -> None:
    job = Job()
    for _ in range(4):
        job.take(100 * MIB, making(script(5)))
    for _ in range(6):
        job.take(100 * MIB, stepping(script(12)))
    job.fail(100 * MIB, stepping(script(12)))
    found = first(job, tmp_path)
    assert (found.cause, found.bytes, found.where[0].line) == ("optimizer state", 600 * MIB, 12)


def test_a_second_model(tmp_path: Path) -> None:
    job = training(3)
    for _ in range(8):
        job.take(100 * MIB, making(script(7)))
    job.fail(64 * MIB, in_model(21, script(10)))
    found = first(job, tmp_path)
    assert (found.cause, found.bytes, found.where[0].line) == ("parameter", 800 * MIB, 7)


def test_a_copy_that_a_constructor_makes_has_a_line_of_its_own(tmp_path: Path) -> None:
    """The policy is built and its reference copied below the same line of the script."""
    job = Job()
    built = [frame("__init__", MODEL, 12), *script(9)]
    copied = [frame("deepcopy", "/usr/lib/python3.12/copy.py", 1), frame("__init__", SCRIPT, 31), *script(9)]
    for _ in range(4):
        job.take(50 * MIB, built)
        job.take(100 * MIB, copied)
    job.fail(64 * MIB, in_model(21, script(10)))
    found = first(job, tmp_path)
    assert (found.cause, found.bytes, found.where[0].line) == ("parameter", 400 * MIB, 31)


def test_data_that_was_loaded_once_is_not_kept_from_pass_to_pass(tmp_path: Path) -> None:
    job = Job()
    for _ in range(12):
        job.take(32 * MIB, script(3, "load"))
    held = [job.take(16 * MIB, in_model(21, script(10))) for _ in range(40)]
    job.free(*held)
    job.fail(64 * MIB, in_model(21, script(10)))
    assert explained(job, tmp_path).kept == []


def test_the_last_pass_counts_once_it_holds_what_the_others_hold(tmp_path: Path) -> None:
    """The graph of the last pass is kept as well: the request that fails belongs to the next step."""
    job = training(12, leak=True)
    job.fail(64 * MIB, script(30, "rollout"))
    assert first(job, tmp_path).bytes == 12 * (64 * MIB + 4096)


def test_one_tensor_per_pass_is_named_where_it_is_allocated(tmp_path: Path) -> None:
    job = Job()
    for _ in range(12):
        job.take(32 * MIB, in_model(44, script(10)))
        job.free(*(job.take(16 * MIB, in_model(line, script(10))) for line in (21, 22)))
    job.fail(64 * MIB, in_model(21, script(10)))
    found = first(job, tmp_path)
    assert found.cause == "kept"
    assert [(place.file, place.line) for place in found.where] == [(MODEL, 44), (SCRIPT, 10)]


def test_layers_of_different_sizes_are_no_growth(tmp_path: Path) -> None:
    job = Job()
    for size in (1, 2, 4, 8, 16, 32, 64, 128) * 3:
        job.take(size * MIB, in_model(21, script(10)))
    job.fail(64 * MIB, in_model(21, script(10)))
    assert explained(job, tmp_path).growing == []


def test_free_pieces_that_something_pins(tmp_path: Path) -> None:
    job = Job()
    for _ in range(40):
        job.split(job.take(2 * MIB, script(7, "pin")), 20 * MIB)
    job.fail(300 * MIB, script(9))
    found = explained(job, tmp_path)
    culprit = name_culprits(found)[0]
    assert (culprit.cause, culprit.bytes, culprit.where[0].line) == ("fragmentation", 720 * MIB, 7)
    assert (found.fragments.largest_free, found.fragments.pinned_segments) == (18 * MIB, 40)
    assert found.changes[0].code == "expandable-segments"


def test_a_request_beyond_all_there_is_has_no_change_that_frees_crumbs(tmp_path: Path) -> None:
    job = Job()
    for _ in range(4):
        job.split(job.take(2 * MIB, script(7)), 20 * MIB)
    job.fail(400 << 30, script(9, "ask"))
    found = explained(job, tmp_path)
    culprit = name_culprits(found)[0]
    assert (culprit.cause, culprit.where[0].line, found.changes) == ("request", 9, [])


def test_a_queue_of_fixed_length_is_no_growth(tmp_path: Path) -> None:
    job, queue = Job(), []
    for _ in range(40):
        queue.append(job.take(8 * MIB, script(6)))
        if len(queue) > 5:
            job.free(queue.pop(0), frames=script(7))
    assert explained(job, tmp_path).kept == []


def test_gradients_have_the_size_of_weights(tmp_path: Path) -> None:
    job = Job()
    for size in (10, 20):
        job.take(size * MIB, making(script(5)))
    for size in (10, 20, 3):
        job.take(size * MIB, [])
    kinds = dict(explained(job, tmp_path).by_kind.select("kind", "bytes").iter_rows())
    assert kinds == {"parameter": 30 * MIB, "gradient": 30 * MIB, "temporary": 3 * MIB}


def test_the_failure_counts_not_what_was_left_after_it(tmp_path: Path) -> None:
    job = Job()
    held = [job.take(100 * MIB, in_model(21, script(10))) for _ in range(3)]
    job.fail(100 * MIB, in_model(22, script(10)))
    job.free(*held, frames=script(20))
    assert explained(job, tmp_path).allocated == 300 * MIB


def test_without_history(tmp_path: Path) -> None:
    job = training(2)
    job.events.clear()
    found = explained(job, tmp_path)
    assert not found.failed
    assert dict(found.by_kind.select("kind", "bytes").iter_rows()) == {
        "optimizer state": 128 * MIB,
        "parameter": 64 * MIB,
    }


@pytest.mark.parametrize("steps", [3, 5, 30])
def test_healthy_loops_keep_nothing(tmp_path: Path, steps: int) -> None:
    assert explained(training(steps), tmp_path).kept == []


def test_a_cache_that_grows_with_every_token(tmp_path: Path) -> None:
    job, held = Job(), dict[tuple[int, int], int]()
    for token in range(1, 40):
        for layer in range(4):
            for line in (13, 14):
                new = job.take(token * MIB, script(line, "attend"))
                if token > 1:
                    job.free(held[layer, line], frames=script(line, "attend"))
                held[layer, line] = new
    job.fail(40 * MIB, script(13, "attend"))
    found = first(job, tmp_path)
    assert (found.cause, found.bytes) == ("growing", 8 * 39 * MIB)
    assert [place.line for place in found.where] == [13, 14]


def test_a_workspace_of_cublas_is_not_kept(tmp_path: Path) -> None:
    job = training(4, leak=True)
    job.events.insert(5, {**job.events[4], "addr": 1 << 21, "size": 32 * MIB})
    job.live[1 << 21] = {**job.live[job.events[4]["addr"]], "address": 1 << 21, "size": 32 * MIB}
    kinds = dict(explained(job, tmp_path).by_kind.select("kind", "bytes").iter_rows())
    assert kinds["workspace"] == 32 * MIB
    assert kinds["activation"] == 4 * 64 * MIB


def test_frames_of_cpp_are_not_lines(tmp_path: Path) -> None:
    job = Job()
    engine = {"name": "torch::autograd::Engine::thread_main()", "filename": "??", "line": 0}
    job.take(8 * MIB, [engine])
    job.take(8 * MIB, [engine, *script(7)])
    found = explained(job, tmp_path)
    assert found.by_line["site_line"].to_list() == [7, None]
