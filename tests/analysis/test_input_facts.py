"""What advice on the input rests on: workers, cores, prefetching, the slow function."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.host.place import Place
from stepscope.analysis.input_facts import InputFacts, input_facts
from tests.builders.inline import trace_of

LOADER = """
    track     start  dur  name                                       kind        launches
    main          0  900  ProfilerStep#1                             annotation  -
    main          0  800  enumerate(DataLoader)#_{}DataLoaderIter.__next__  annotation  -
    main          0  800  torch/utils/data/dataloader.py(7): __next__  python    -
    main         10  700  data.py(11): decode                        python      -
    main         20  600  <built-in function sorted>                 python      -
    main        720   40  data.py(30): crop                          python      -
    """


def test_a_loader_in_the_loops_own_process() -> None:
    facts = input_facts(trace_of(LOADER.replace("{}", "SingleProcess")))
    assert (facts.has_workers, facts.workers, facts.prefetches) == (False, 0, False)
    assert facts.slow == Place("data.py", 11, "decode")
    assert facts.slow_share == pytest.approx(700 / 740)
    assert not facts.slow_in_worker


def test_workers_that_the_capture_watched() -> None:
    stages = [
        {"name": "/d/data.py(11): decode", "total_ns": 90, "self_ns": 10},
        {"name": "/d/data.py(40): resize", "total_ns": 80, "self_ns": 30},
    ]
    workers = [{"worker": number, "batches": 4, "stages": stages} for number in range(2)]
    capture = {"input": {"batches": 8, "wait_ns": 500, "workers": workers}, "cores": 16}
    facts = input_facts(trace_of(LOADER.replace("{}", "MultiProcessing"), capture=capture))
    assert (facts.has_workers, facts.workers, facts.cores, facts.prefetches) == (True, 2, 16, True)
    assert (facts.slow, facts.slow_share) == (Place("/d/data.py", 40, "resize"), 0.75)
    assert (facts.slow_in_worker, facts.waits_ns) == (True, 500)


def test_workers_that_were_only_counted() -> None:
    text = LOADER.replace("{}", "MultiProcessing")
    facts = input_facts(trace_of(text, capture={"unprofiled": {"before": {"workers": 4}, "after": None}}))
    assert (facts.has_workers, facts.workers) == (True, 4)


def test_tf_data_prefetches_where_a_stage_does() -> None:
    text = """
        track     start  dur  name                 kind
        main          0  900  ProfilerStep#1       annotation
        tf_data       0  800  {}                   span
        """
    assert input_facts(trace_of(text.replace("{}", "Iterator::Map"))).prefetches is False
    assert input_facts(trace_of(text.replace("{}", "Iterator::Root::Prefetch"))).prefetches is True


@pytest.mark.parametrize(
    "capture",
    [
        {},
        {"input": 3, "cores": "many", "unprofiled": [1]},
        {"input": {"workers": [1, {"stages": [2, {"name": 5, "self_ns": None}]}]}},
        {"input": {"workers": {"a": 1}}, "cores": True},
    ],
)
def test_an_odd_sidecar_gives_no_facts(capture: dict[str, Any]) -> None:
    text = """
        track  start  dur  name            kind
        main       0  900  ProfilerStep#1  annotation
        """
    facts = input_facts(trace_of(text, capture=capture))
    assert facts.slow is None
    assert facts.cores is None
    assert isinstance(facts, InputFacts)
