"""Which way the copies go, in words."""

from __future__ import annotations

import pytest

from stepscope.reports.model.report import CopyRow, Device, Profile, Report
from stepscope.reports.wording.copies import exposed_copies


@pytest.mark.parametrize(
    ("exposed", "said"),
    [
        ({"HtoD": 9}, "copies from the host to the device"),
        ({"HtoD": 9, "DtoH": 0}, "copies from the host to the device"),
        ({"HtoD": 9, "DtoH": 2}, "copies, mostly from the host to the device"),
        ({"DtoD": 9, "DtoH": 2}, "copies, mostly within the device"),
        ({"HtoD": 5, "DtoH": 5}, "copies"),
        ({"memset": 9, "HtoD": 1}, "copies"),
        ({"HtoD": None}, "copies"),
        ({}, "copies"),
    ],
)
def test_the_way_of_most_copies(exposed: dict[str, int | None], said: str) -> None:
    rows = [CopyRow(direction=way, calls=1, total_ns=10, exposed_ns=ns) for way, ns in exposed.items()]
    assert exposed_copies(Report(profile=Profile(path="x"), device=Device(copies=rows))) == said
