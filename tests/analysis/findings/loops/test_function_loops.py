"""A traced function that a step on the CPU runs many times: pieces of one batch, a growing sequence, or neither."""

from __future__ import annotations

from itertools import accumulate

from tests.builders.jobs.tensorflow_steps import found_in, function


def _runs(*ops: tuple[int, int], before: int = 30, name: str = "MatMul") -> list[str]:
    """Runs of one function, one after the other, each with (number, µs) of ops."""
    lengths = [before + 20 + count * length for count, length in ops]
    starts = [0, *accumulate(lengths)]
    return [
        row
        for at, whole, (count, length) in zip(starts, lengths, ops, strict=False)
        for row in function(at, "forward_7", before, whole - before, *[(name, length)] * count)
    ]


def test_equal_runs_may_be_a_batch() -> None:
    """Ten runs of 100 µs, half of which is no op: one of them would need 50 µs for all."""
    found = found_in(*[_runs(*[(1, 50)] * 10)] * 3)
    loop = found["unbatched-loop"]
    assert "launch-bound" not in found
    assert loop.speedup.low == 1
    assert 1.3 < loop.speedup.mid < 1.4
    assert 1.8 < loop.speedup.high < 2.1
    assert loop.evidence["runs_per_step"] == 10
    assert loop.title.endswith("?")
    assert "forward 10 times" in loop.detail
    assert "tf.stack" in loop.fix


def test_few_runs_are_no_loop() -> None:
    assert "unbatched-loop" not in found_in(*[_runs(*[(1, 50)] * 7)] * 3)


def test_runs_of_different_lengths_are_no_batch() -> None:
    mixed = [(1, 20), (1, 90)] * 5
    assert "unbatched-loop" not in found_in(*[_runs(*mixed)] * 3)


def test_runs_of_different_ops_are_no_batch() -> None:
    mixed = [(1, 48), (2, 24)] * 5
    assert "unbatched-loop" not in found_in(*[_runs(*mixed)] * 3)


def test_training_steps_need_the_weights_of_the_one_before() -> None:
    rows = _runs(*[(1, 50)] * 10, name="ResourceApplyAdam")
    assert "unbatched-loop" not in found_in(*[rows] * 3)


def test_runs_with_one_op_more_each_time_compute_a_prefix_again() -> None:
    """From 20 to 31 items, of a step in which the function takes most of the time."""
    rows = _runs(*[(count, 2) for count in range(20, 32)], before=10)
    found = found_in(*[rows] * 3)
    prefix = found["recomputed-prefix"]
    assert "unbatched-loop" not in found
    assert prefix.evidence["tokens"] in (25, 26)
    assert prefix.evidence["runs_per_step"] == 12
    assert prefix.share > 0.8
    assert 3 < prefix.speedup.low < 3.5 < prefix.speedup.mid < 4.2 < prefix.speedup.high < 6
    assert "initial_state" in prefix.fix


def test_short_ops_that_are_recorded_in_later_runs_only() -> None:
    """Most runs gain as many ops as the one before, one gains five times as many."""
    counts = [20 + number + (4 if number > 5 else 0) for number in range(12)]
    rows = _runs(*[(count, 1) for count in counts])
    assert "recomputed-prefix" in found_in(*[rows] * 3)


def test_runs_that_gain_ops_by_chance_compute_no_prefix() -> None:
    counts = [20 + number % 3 for number in range(12)]
    assert "recomputed-prefix" not in found_in(*[_runs(*[(count, 1) for count in counts])] * 3)


def test_a_short_sequence_that_grows_is_no_prefix() -> None:
    """Its weights, not its items, take the time."""
    rows = _runs(*[(count, 8) for count in range(1, 11)], before=10)
    found = found_in(*[rows] * 3)
    assert "recomputed-prefix" not in found
    assert "unbatched-loop" not in found
