"""The rows of a diff by family, judged: what explanations and the verdict are made from."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.diffs.data.model import Row


@dataclass(frozen=True)
class JudgedRows:
    """All rows of each family, the largest difference first; a family that cannot be compared has none."""

    figures: list[Row]
    parts: list[Row]
    names: list[Row]
    ops: list[Row]
    ops_by_name: list[Row]
    ops_on_host: list[Row]  # by name, of one recording
    kernels: list[Row]
    precision: list[Row]
    collectives: list[Row]
    memory: list[Row]
    waits: list[Row]  # calls that wait for the device, where their number differs
    calls: list[Row]  # ops whose number of calls differs
    scopes: list[Row]  # that only one run has ops in
    functions: list[Row]  # of Python, that only one run calls
