"""Names of calls of compiled functions."""

from __future__ import annotations

import pytest

from stepscope.analysis.host.program_calls import called_function, name_call


@pytest.mark.parametrize("function", ["update", "<lambda>", "scan(f)"])
def test_a_call_names_its_function(function: str) -> None:
    assert called_function(name_call(function)) == function


@pytest.mark.parametrize("name", ["EagerExecute", "PjitFunction(cut"])
def test_other_names_stay(name: str) -> None:
    assert called_function(name) == name
