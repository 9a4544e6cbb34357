"""A function that is named after its batch but runs the network is no loader, also where the network is a captured graph."""

from __future__ import annotations

import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from tests.builders.inline import trace_of


@pytest.mark.parametrize(("call", "part"), [("cudaGraphLaunch", "python"), ("cudaLaunchKernel", "input")])
def test_one_that_launches_most_work_as_a_graph(call: str, part: str) -> None:
    trace = trace_of(
        f"""
        track     start   dur  name                                      kind        launches
        main          0  9000  ProfilerStep#1                            annotation  -
        main          0  4000  worker.py(445): forward_batch_generation  python      -
        main       3900    50  {call}                                    runtime     decode
        stream 7   3960  5000  decode                                    kernel      -
        """,
        framework="pytorch",
    )
    parts = RankContext(0, trace, Options()).account.parts
    longest = parts.filter(parts["part"] != "compute").sort("ns")["part"][-1]
    assert longest == part
