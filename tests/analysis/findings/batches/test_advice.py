"""Advice about batches fits who makes them: workers only where something can be given workers."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import findings_of, gemm, steps

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
NO_WORKERS = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def found(name: str, *more: str, framework: str = "pytorch", **capture: Any) -> Finding:
    """What is said of steps of 1 ms that take 600 µs for a batch."""
    rows = [f"main  0  600  {name}  annotation  -", *more, *gemm(600, 385)]
    every = findings_of(steps(*rows), framework=framework, capture=capture)
    return next(each for each in every if each.code == "input-bound")


def test_a_function_of_the_job_is_named_and_gets_no_loader() -> None:
    fix = found("make_batch").fix
    assert "call make_batch in a thread" in fix
    assert "DataLoader" not in fix and "workers" not in fix
    assert "Pin memory" not in fix


def test_pinning_in_every_step_is_said() -> None:
    assert "Pin memory once" in found("make_batch", "main  10  500  aten::pin_memory  op  -").fix


def test_a_long_name_is_left_to_the_title() -> None:
    assert "make it in a thread" in found(f"get_batch_{'of_words_' * 10}").fix


def test_a_loader_without_workers_is_given_some_and_no_if() -> None:
    fix = found(NO_WORKERS).fix
    assert fix.startswith("Load in worker processes: DataLoader(num_workers=8")
    assert "num_workers=0 now" in fix
    assert "If workers" not in fix


def watched(count: int) -> dict[str, Any]:
    """What the capture noted of so many workers."""
    return {"workers": [{"worker": number, "stages": []} for number in range(count)]}


@pytest.mark.parametrize(
    ("capture", "said"),
    [
        ({}, "a larger num_workers, with persistent_workers"),
        ({"input": watched(2)}, "(2 now)"),
        ({"input": watched(2), "cores": 16}, "(2 now, up to 16 on this machine)"),
    ],
)
def test_a_loader_with_workers_is_given_more(capture: dict[str, Any], said: str) -> None:
    fix = found(WORKERS, **capture).fix
    assert said in fix
    assert "already decoded" in fix
    assert "If workers" not in fix


def test_no_more_workers_than_cores() -> None:
    fix = found(WORKERS, input=watched(4), cores=4).fix
    assert fix.startswith("Do less for each batch, since there is a worker for every core already")
    assert "num_workers" not in fix


def test_what_is_called_a_loader_is_taken_for_one() -> None:
    assert "If workers are on already" in found("train_dataloader_next").fix


def test_a_function_feeds_tensorflow_from_a_dataset() -> None:
    assert "turn the data into a tf.data.Dataset" in found("make_batch", framework="tensorflow").fix


def test_jax_has_no_loader_of_its_own() -> None:
    assert "Grain" in found("make_batch", framework="jax").fix
