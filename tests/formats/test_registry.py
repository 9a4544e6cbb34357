"""Every format is found by its folder, in its turn, and the documentation lists it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope import plugins
from stepscope.errors import UnreadableFile
from stepscope.formats import detect, registry
from stepscope.formats.page import update
from stepscope.formats.reader import Format
from stepscope.formats.registry import built_in_formats, describe_supported
from stepscope.formats.source import Source
from stepscope.profiles.find import skipped
from tests.builders.files import put

ROOT = Path(__file__).parents[2]

Offer = Callable[[Format], None]


@pytest.fixture(autouse=True)
def _nothing_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_warned", set())


def test_the_strict_come_first() -> None:
    turn = {each.name: place for place, each in enumerate(built_in_formats())}
    assert turn["xplane"] < turn["kineto"] < turn["chrome"], "a plane may begin with a newline and a brace"
    assert turn["chrome"] == len(turn) - 1, "any JSON may be one"
    assert {"stepscope-ring", "tf-events"} <= turn.keys()


def test_the_table_in_the_documentation() -> None:
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    assert update(page) == page, "python -m stepscope.formats.page docs/formats.md"


def test_errors_list_what_is_supported() -> None:
    listed = describe_supported()
    assert all(each.summary in listed for each in built_in_formats())


def refuse(*_: object) -> bool:
    raise ValueError("no luck")


def a_format(**changed: object) -> Format:
    """One that a plug-in may offer."""
    values: dict[str, Any] = {
        "name": "mine",
        "summary": "mine (*.csv)",
        "matches": lambda head, name: head.startswith(b"mine"),
        "read": refuse,
        "suffixes": (".csv",),
        "turn": 1,
    }
    return Format(**{**values, **changed})


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Offers a format as a plug-in would."""

    def offered(each: Format) -> None:
        monkeypatch.setattr(registry, "load_plugins", lambda *_: [("mine", each)])
        found = registry.find_formats.__wrapped__()
        monkeypatch.setattr(registry, "find_formats", lambda: found)
        monkeypatch.setattr(skipped, "find_formats", lambda: found)

    return offered


def test_a_format_of_a_plugin(offer: Offer, tmp_path: Path) -> None:
    offer(a_format())
    assert skipped.by_name("run.csv").format_hint == "mine"
    assert skipped.by_content(b"mine, all mine").format_hint == "mine"
    assert "mine (*.csv)" in describe_supported()
    put(tmp_path, "run.bin", content=b"mine")
    source = Source(str(tmp_path / "run.bin"))
    assert detect(source).name == "mine"
    with pytest.raises(UnreadableFile, match="the plug-in mine failed with ValueError: no luck"):
        detect(source).read(source, lambda _: None)


def test_it_cannot_take_the_files_of_others(offer: Offer) -> None:
    offer(a_format(matches=lambda head, name: True, suffixes=(".json",)))
    assert skipped.by_content(b'{"schemaVersion": 1').format_hint == "kineto"
    assert skipped.by_name("a.pt.trace.json").format_hint == "kineto"
    assert skipped.by_name("a.trace.json.gz").format_hint == "chrome"


def test_one_that_fails_is_not_asked_in_vain(offer: Offer) -> None:
    offer(a_format(name="faulty", matches=refuse))
    with pytest.warns(UserWarning, match="does not work: ValueError"):
        assert skipped.by_content(b'{"traceEvents": [').format_hint == "chrome"
