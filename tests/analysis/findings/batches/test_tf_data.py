"""What a pipeline of tf.data does, by the names of its stages and ops."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.batches.tf_data import TfData, find_tf_data
from tests.builders.cases import case_of_text, steps

THREAD = "tf_data_private_threadpool"
WAIT = "main  0  400  IteratorGetNextOp::DoCompute  op  -"
STAGES = ("main  1  390  Iterator::Prefetch  span  -", "main  2  10  Iterator::TensorSlice  span  -")
REPEAT = "main  20  10  Iterator::ForeverRepeat  span  -"


def pipeline(*rows: str) -> TfData:
    """Three steps of 1 ms that wait 400 µs for it."""
    case = case_of_text(steps(WAIT, *STAGES, *rows), framework="tensorflow")
    found = find_tf_data(case.trace, case.steps)
    assert found is not None
    return found


def run(at: int, *ops: tuple[str, int]) -> list[str]:
    """A run of a function of the pipeline, with ops of these lengths."""
    rows = [f"{THREAD}  {at}  {sum(dur for _, dur in ops)}  ExecutorState::Process  span  -"]
    for name, dur in ops:
        rows.append(f"{THREAD}  {at}  {dur}  {name}  op  -")
        at += dur
    return rows


def test_work_without_anything_random_is_the_same_in_every_epoch() -> None:
    found = pipeline(*run(0, ("ReadFile", 10), ("DecodeJpeg", 600), ("ResizeBilinear", 190)))
    assert found.same_share == 1
    assert found.slowest is not None
    assert found.slowest[0] == "DecodeJpeg"
    assert found.slowest[1] == pytest.approx(600 / 800)


def test_a_random_run_is_another_one_in_every_epoch_but_for_what_it_decodes() -> None:
    """Runs of other functions, before it or after it, stay the same."""
    alone = run(0, ("DecodeJpeg", 300), ("ResizeBilinear", 100))
    random = run(500, ("RandomUniform", 10), ("ReverseV2", 90))
    assert pipeline(*alone, *random).same_share == pytest.approx(400 / 500)
    together = run(0, ("RandomUniform", 10), ("DecodeJpeg", 300), ("ReverseV2", 90))
    assert pipeline(*together).same_share == pytest.approx(300 / 400)
    assert pipeline(*run(0, ("RandomUniform", 10), ("DecodeAndCropJpeg", 300))).same_share == 0


def test_what_python_makes_is_not_known_to_be_the_same() -> None:
    found = pipeline(*run(0, ("PyFunc", 300), ("Cast", 100)))
    assert found.same_share == 0
    assert not found.yields_samples


def test_a_generator_that_is_called_often_yields_samples() -> None:
    generator = "main  30  10  Iterator::Generator  span  -"
    calls = [row for at in range(0, 800, 100) for row in run(at, ("PyFunc", 80))]
    found = pipeline(generator, *calls)
    assert found.yields_samples
    assert (found.python_calls, found.python_call_ns) == (8, 80_000)
    assert not pipeline(generator, *run(0, ("PyFunc", 800))).yields_samples
    assert not pipeline(*calls).yields_samples


def test_records_come_again_where_a_list_of_them_repeats() -> None:
    work = run(0, ("DecodeJpeg", 100))
    assert pipeline(REPEAT, *work).repeats
    assert not pipeline(*work).repeats
    files = "main  31  10  Iterator::TFRecord  span  -"
    assert not pipeline(REPEAT, files, *work).repeats
    assert not pipeline(*work).caches
    assert pipeline("main  30  10  Iterator::MemoryCache  span  -", *work).caches


def test_threads_are_busy_beside_the_step_not_while_it_waits() -> None:
    work = run(0, ("DecodeJpeg", 700))
    assert pipeline(*work).busy == pytest.approx(300 / 600)


def test_no_pipeline_without_work_of_it() -> None:
    for rows in ([WAIT, *STAGES], ["main  0  400  Conv2D  op  -"]):
        case = case_of_text(steps(*rows), framework="tensorflow")
        assert find_tf_data(case.trace, case.steps) is None
