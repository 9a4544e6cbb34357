"""What a plug-in may offer. The examples, installed, are tested in tests/examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope import plugins
from stepscope.markdown import replace_section


def offering(monkeypatch: pytest.MonkeyPatch, *values: object) -> list[tuple[str, str]]:
    """The texts that are accepted, where `a` is taken."""
    monkeypatch.setattr(plugins, "_warned", set())
    monkeypatch.setattr(
        plugins, "_load_entry_points", lambda _: [(f"p{k}", value) for k, value in enumerate(values)]
    )
    return plugins.load_plugins("group", str, lambda text: text, ["a"])


def test_one_value_or_several(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offering(monkeypatch, "b", ["c", "d"]) == [("p0", "b"), ("p1", "c"), ("p1", "d")]


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        (["a"], "the name a is already taken"),
        ([3], "offers a int, not a str"),
        (["b", "b"], "name b is already"),
    ],
)
def test_what_is_refused(monkeypatch: pytest.MonkeyPatch, values: list[object], warning: str) -> None:
    with pytest.warns(plugins.PluginWarning, match=warning):
        assert len(offering(monkeypatch, *values)) == len(values) - 1


def test_developers_get_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.RAISE, "1")
    with pytest.raises(ValueError, match="no luck"):
        plugins.warn_of_fault("mine", ValueError("no luck"))


def test_a_section_is_replaced() -> None:
    page = "# A\n\n## B\n\nold\n\n## C\n\nkept\n"
    assert replace_section(page, "## B", "## B\n\nnew\n") == "# A\n\n## B\n\nnew\n\n## C\n\nkept\n"
    with pytest.raises(ValueError, match="no section"):
        replace_section(page, "## D", "")


@pytest.mark.parametrize(
    ("name", "text", "may_hold"),
    [
        ("mine-1.0.dist-info", "[stepscope.formats]\nmine = mine:FORMAT\n", True),
        ("mine.egg-info", "[console_scripts]\nx = y:z\n[stepscope.findings]\na = b:c\n", True),
        ("other-1.0.dist-info", "[tensorboard_plugins]\nstepscope = stepscope.tensorboard:plugin\n", False),
        ("mine", "[stepscope.formats]\nmine = mine:FORMAT\n", False),
        ("mine-1.0-py3.egg", "", True),
    ],
)
def test_where_a_plug_in_may_be(tmp_path: Path, name: str, text: str, may_hold: bool) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "entry_points.txt").write_text(text)
    assert plugins._may_hold(str(tmp_path)) == may_hold


def test_a_packed_folder_may_hold_one_and_a_missing_one_does_not(tmp_path: Path) -> None:
    (tmp_path / "packed.zip").write_bytes(b"PK")
    assert plugins._may_hold(str(tmp_path / "packed.zip"))
    assert not plugins._may_hold(str(tmp_path / "missing"))
