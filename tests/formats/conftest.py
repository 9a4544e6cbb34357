"""What the tests of the readers share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from tests.formats.ways import WAYS, Way, taken
from tests.sample import SOAKS


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    """Each way of reading trace JSON in turn."""
    with taken(request.param, tmp_path) as found:
        yield found


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each test in the first way and in one of the others; in the soak, or where a way is asked for by name, in all.

    That all ways agree, `test_parity.py` and `test_generated.py` check for whole recordings and for any events.
    """
    if SOAKS:
        return
    ways = {item: found for item in items if (found := _way_of(item)) is not None}
    sampled = {_without_way(item, name) for item, name in ways.items() if name == WAYS[0]}
    left_out = {
        item
        for item, name in ways.items()
        if name != WAYS[0] and (test := _without_way(item, name)) in sampled and name != _other_way(test)
    }
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


def _way_of(item: pytest.Item) -> str | None:
    """The way of a test of the readers; tests elsewhere may have parameters of the same name."""
    spec = getattr(item, "callspec", None)
    found = spec.params.get("way") if spec is not None else None
    return found if isinstance(found, str) and found in WAYS else None


def _without_way(item: pytest.Item, name: str) -> str:
    return item.nodeid.replace(name, "", 1)


def _other_way(test: str) -> str:
    """Always the same for the same test."""
    return WAYS[1 + crc32(test.encode()) % (len(WAYS) - 1)]
