"""What several tests of commands share: recordings that are analysed once, and queries that are asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
import pytest

from stepscope.analysis.options import Options
from stepscope.cli import query
from stepscope.cli.console import Talk
from stepscope.diffs.data.samples import Side
from stepscope.diffs.side import read_side
from stepscope.profiles.profile import Profile
from stepscope.profiles.sql.wire import Order

_SIDES: dict[tuple[object, ...], Side] = {}
_ROWS: dict[tuple[str, str], pl.DataFrame] = {}


@pytest.fixture
def sides_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is said about a comparison: recordings that do not change are analysed by the first of them."""

    def read(profile: Profile, options: Options, ranks: Sequence[int] | None = None) -> Side:
        key = (str(profile.path), options, None if ranks is None else tuple(ranks))
        if "pytest-" in key[0]:  # written by the test itself
            return read_side(profile, options, ranks)
        if key not in _SIDES:
            _SIDES[key] = read_side(profile, options, ranks)
        return _SIDES[key]

    monkeypatch.setattr("stepscope.gate.check.read_side", read)
    monkeypatch.setattr("stepscope.diffs.build.read_side", read)


@pytest.fixture
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what becomes of the rows: a process that answers the query starts for the first of them."""
    really = query._found

    def find(talk: Talk, order: Order, profile: Callable[[], Profile]) -> pl.DataFrame:
        key = (order.sql, str(profile().path))
        if key not in _ROWS:
            _ROWS[key] = really(talk, order, profile)
        return _ROWS[key]

    monkeypatch.setattr(query, "_found", find)
