"""A dataset and its iterator, or a loop of Keras, that every step starts again."""

from __future__ import annotations

from tests.builders.jobs.tensorflow_steps import call, found_in, function, tracing

_DELETED = "main  {at}  {length}  TFE_DeleteTensorHandle  span  -"


def _start(at: int, scale: int = 1) -> list[str]:
    """A dataset with a function of its own, and its iterator: 500 µs."""
    return [
        *call(at, "TensorSliceDataset", 20 * scale, run=20),
        tracing(at + 60 * scale, 140 * scale),
        *call(at + 200 * scale, "ParallelMapDatasetV2", 40 * scale, run=20),
        *call(at + 280 * scale, "AnonymousIteratorV3", 10, run=10),
        *call(at + 300 * scale, "MakeIterator", 20, run=180 * scale),
    ]


def _train(at: int, length: int) -> list[str]:
    return function(at, "train_step_7", 0, length, ("MatMul", length))


def test_what_only_the_model_runs_for_is_left() -> None:
    rows = [*_start(0), *_train(500, 100), _DELETED.format(at=600, length=400)]
    found = found_in(*[rows] * 3)
    assert list(found) == ["pipeline-restart"]
    restart = found["pipeline-restart"]
    assert restart.share > 0.88
    assert 4 < restart.speedup.low < 9 < restart.speedup.mid < 10.5 < restart.speedup.high
    assert restart.evidence["iterators_per_step"] == 1
    assert "train_on_batch" in restart.fix


def test_tracing_for_a_dataset_is_not_retracing_but_that_of_the_model_is() -> None:
    def rows(step: int) -> list[str]:
        own = function(750, f"train_step_{step}", 150, 100, ("MatMul", 100))
        return [*_start(0), tracing(500, 250), *own]

    found = found_in(*[rows(step) for step in range(3)])
    assert 0.45 < found["pipeline-restart"].share < 0.52
    assert 0.24 < found["retracing"].share < 0.42


def test_an_iterator_beside_much_eager_work_owns_its_own_time_alone() -> None:
    names = ("Mul", "Sub", "Cast", "Shape", "Sqrt")
    eager = [row for k in range(20) for row in call(300 + 35 * k, names[k % 5], 15, run=20)]
    made = [*call(0, "TensorSliceDataset", 30, run=20), *call(50, "MakeIterator", 150, run=100)]
    found = found_in(*[[*made, *eager]] * 3)
    assert 0.1 < found["pipeline-restart"].share < 0.32
    assert found["eager-execution"].share > 0.6


def test_an_iterator_in_one_step_of_several_is_the_start_of_an_epoch() -> None:
    usual = _train(0, 900)
    first = [*_start(0), *_train(500, 400)]
    assert "pipeline-restart" not in found_in(first, usual, usual)


def test_a_step_that_is_an_epoch_is_calm() -> None:
    rows = [*call(0, "TensorSliceDataset", 5, run=5), *call(10, "MakeIterator", 5, run=5), *_train(20, 950)]
    assert "pipeline-restart" not in found_in(*[rows] * 3)


def test_python_of_keras_around_a_start_goes_with_it() -> None:
    keras = "main  0  1000  /site-packages/keras/src/trainers/trainer.py(521): predict  python  -"
    rows = [keras, *_start(0), *_train(500, 100)]
    assert found_in(*[rows] * 3)["pipeline-restart"].share > 0.85
    own = "main  0  1000  job.py(12): act  python  -"
    rows = [own, *_start(0), *_train(500, 100)]
    assert found_in(*[rows] * 3)["pipeline-restart"].share < 0.6
