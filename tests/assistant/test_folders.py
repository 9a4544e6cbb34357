"""Nothing outside of the folders is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.assistant.folders import Folders
from stepscope.errors import StepscopeError


def test_paths_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "logs" / "run").mkdir(parents=True)
    folders = Folders([str(tmp_path / "logs")])
    assert folders.find("run") == folders.find(str(tmp_path / "logs" / "run"))
    assert folders.find(".") == (tmp_path / "logs").resolve()


@pytest.mark.parametrize("path", ["..", "../secret", "/etc/passwd", "run/../../secret", "link"])
def test_paths_outside_are_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "logs" / "run").mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    (tmp_path / "logs" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(StepscopeError, match="outside the folders"):
        Folders([str(tmp_path / "logs")]).find(path)


def test_what_does_not_exist_is_said_to_be_that(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="No such file"):
        Folders([str(tmp_path)]).find("nothing")
    with pytest.raises(StepscopeError, match="not a folder"):
        Folders([str(tmp_path / "nothing")])
    with pytest.raises(StepscopeError):
        Folders([str(tmp_path)]).find("\0")
