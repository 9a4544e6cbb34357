"""What is left of steps on a CPU where the work of a tf.data pipeline goes."""

from __future__ import annotations

from stepscope.analysis.findings.finding import Finding
from tests.analysis.findings.batches.test_tf_data import REPEAT, STAGES, THREAD, WAIT, run
from tests.builders.cases import findings_of, steps

MODEL = "main  400  590  Conv2D  op  -"
AHEAD = f"{THREAD}  995  2  Iterator::ParallelMapV2  span  -"
CACHE = "main  30  10  Iterator::MemoryCache  span  -"
DECODE = run(0, ("DecodeJpeg", 900))


def found(*rows: str) -> Finding:
    """Steps of 1 ms on two cores that wait 400 µs for a pipeline."""
    every = findings_of(
        steps(WAIT, *STAGES, MODEL, AHEAD, *rows), framework="tensorflow", capture={"cores": 2}
    )
    return next(each for each in every if each.code == "input-bound")


def test_what_can_be_cached_goes_and_leaves_the_cores_to_the_step() -> None:
    """One thread beside two cores: the model takes two thirds of the time at best."""
    cached, before = found(REPEAT, *DECODE), found(REPEAT, CACHE, *DECODE)
    assert before.speedup.mid < 1.3
    assert before.speedup.high < 2
    assert cached.speedup.low > 1.5
    assert 1 / 0.6 < cached.speedup.mid < 1 / 0.4
    assert cached.speedup.high > 1 / 0.6
    assert "Nothing random happens" in cached.detail
    assert "DecodeJpeg" in cached.detail
    assert "behind the last .map()" in cached.fix
    assert "behind the last .map()" not in before.fix


def test_less_is_expected_of_data_that_may_not_come_again() -> None:
    once, again = found(*DECODE), found(REPEAT, *DECODE)
    assert once.speedup.mid < again.speedup.mid
    assert once.speedup.low < again.speedup.low


def test_random_work_stays() -> None:
    half = found(REPEAT, *run(0, ("RandomUniform", 450), ("DecodeJpeg", 450)))
    assert found(REPEAT, CACHE, *DECODE).speedup.mid < half.speedup.mid < found(REPEAT, *DECODE).speedup.mid
    assert "50 % of the pipeline's work is the same" in half.detail
    random = found(REPEAT, *run(0, ("RandomUniform", 450), ("Mul", 450)))
    assert "nothing is cached" not in random.detail
    assert random.speedup.mid < half.speedup.mid


def test_samples_of_a_generator_are_handed_over_as_tensors() -> None:
    """Calls as short as handing a sample over takes; longer ones do work that stays."""
    generator = "main  30  10  Iterator::Generator  span  -"
    calls = [row for at in range(0, 960, 96) for row in run(at, ("PyFunc", 90))]
    quick = found(generator, *calls)
    assert "yields single samples: 10 calls of 90.0 µs" in quick.detail
    assert "from_tensor_slices" in quick.fix
    batches = found(generator, *run(0, ("PyFunc", 900)))
    assert batches.speedup.mid < quick.speedup.mid
    assert "from_tensor_slices" not in batches.fix
