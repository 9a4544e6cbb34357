"""Lines of code: only below the named folders, whatever path a profile has."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.errors import StepscopeError
from stepscope.server.api.source import Sources, source_folders
from stepscope.server.app import Settings, make_app
from stepscope.server.http.request import Query, Refused
from stepscope.server.runs.watch import Place
from tests.server.conftest import Asking

CODE = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    job = tmp_path / "job"
    (job / "model").mkdir(parents=True)
    (job / "train.py").write_text(CODE)
    (job / "model" / "block.py").write_text(CODE)
    (job / "secrets.env").write_text("KEY=1")
    (tmp_path / "outside.py").write_text("secret = 1\n")
    (job / "link.py").symlink_to(tmp_path / "outside.py")
    (job / "inside.py").symlink_to(job / "train.py")
    return job


def lines(folder: Path, file: str, line: int = 10) -> list[str]:
    return list(Sources([folder]).around(Query({"file": file, "line": str(line)}))["lines"])


@pytest.mark.parametrize(
    "file",
    ["train.py", "model/block.py", "/home/me/job/model/block.py", "C:\\job\\model\\block.py", "inside.py"],
)
def test_code_below_the_folder_is_shown(folder: Path, file: str) -> None:
    assert lines(folder, file) == [f"line {number}" for number in range(4, 17)]
    assert lines(folder, str(folder / "train.py"), 1) == [f"line {number}" for number in range(1, 8)]


@pytest.mark.parametrize(
    "file",
    ["../outside.py", "link.py", "secrets.env", "/etc/passwd", "model", "no.py", "", "a\nb.py", "/other/train.py", "x" * 900 + ".py"],
)  # fmt: skip
def test_everything_else_is_refused(folder: Path, file: str) -> None:
    with pytest.raises(Refused) as refused:
        lines(folder, file)
    assert refused.value.status in (400, 404)


def test_a_line_beyond_the_end_shows_the_end(folder: Path) -> None:
    assert lines(folder, "train.py", 5000)[-1] == "line 30"


def test_nothing_is_shown_unless_a_folder_is_named(folder: Path, tmp_path: Path) -> None:
    app = make_app([Place(str(tmp_path))])
    asked = Asking(app)
    assert asked.get("api/state").get_json()["sources"] is False
    answer = asked.get(f"api/source?file={folder}/train.py&line=3")
    assert answer.status_code == 404
    assert "--source" in answer.get_json()["error"]["fix"]
    app.close()


def test_the_page_asks_for_it_and_the_folder_must_exist(folder: Path, tmp_path: Path) -> None:
    app = make_app([Place(str(tmp_path))], Settings(sources=Sources(source_folders([str(folder)]))))
    asked = Asking(app)
    assert asked.get("api/state").get_json()["sources"] is True
    found = asked.get("api/source?file=train.py&line=3").get_json()
    assert (found["first"], found["lines"][2]) == (1, "line 3")
    app.close()
    with pytest.raises(StepscopeError):
        source_folders([str(folder / "train.py")])
