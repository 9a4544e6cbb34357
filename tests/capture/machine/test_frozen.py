"""Learning rates of zero, as the capture finds them in real frameworks on the CPU."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.machine import frozen
from stepscope.capture.machine.matrices import SWITCH
from tests.capture.jobs import warm
from tests.capture.running import needs

JOB = Path(__file__).with_name("frozen_job.py")


def seen(how: str, **added: str) -> Any:
    module = "jax" if how.startswith("jax") else warm.DYNAMO
    return warm.told(module, JOB, how, **added)["found"]


@needs("jax")
def test_arrays_of_one_number_by_the_keys_that_hold_them() -> None:
    assert seen("jax") == [{"framework": "jax", "name": "encoder"}]
    assert seen("jax", **{SWITCH: "0"}) == []


@needs("jax")
def test_a_name_of_numbers_that_are_not_all_zero_tells_nothing() -> None:
    assert seen("jax_two") == []


@needs("torch")
def test_groups_whose_learning_rate_is_zero() -> None:
    assert seen("torch") == [
        {"framework": "torch", "optimizer": "SGD", "frozen": [[3, 4]], "trained": [[2, 3], [2]]}
    ]


@needs("torch")
@pytest.mark.parametrize("how", ["trained", "warm-up", "two"])
def test_groups_that_are_trained_or_not_told_apart(how: str) -> None:
    assert seen(how) == []


def test_what_fails_or_is_not_imported_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert frozen.look(["torch", "jax"]) == []
    assert "jax" not in sys.modules
