"""What the tests of the readers share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.formats.ways import WAYS, Way, taken


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    """Each way of reading trace JSON in turn."""
    with taken(request.param, tmp_path) as found:
        yield found
