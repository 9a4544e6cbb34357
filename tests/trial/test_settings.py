"""Settings that won, in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.capture.trial.settings import read_settings, write_settings
from stepscope.errors import StepscopeError


def test_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    write_settings(path, ["bf16", "compile"])
    assert read_settings(path) == ["bf16", "compile"]


@pytest.mark.parametrize("text", ["", "[]", '{"changes": 3}', '{"changes": ["rm -rf"]}'])
def test_what_is_no_settings_is_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(StepscopeError, match=r"no settings|unknown change"):
        read_settings(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="Cannot read"):
        read_settings(tmp_path / "none")
    with pytest.raises(StepscopeError, match="Cannot write"):
        write_settings(tmp_path / "none" / "x.json", [])
