"""`stepscope report`: every form, where it goes, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path

import pytest

from stepscope.cli.report import FORMS, SECTIONS
from stepscope.reports.render.write import RENDERERS, form_of
from stepscope.reports.tables.tables import ORDER
from tests.builders.hostile import write_hostile
from tests.cli.inside import stepscope, succeeds
from tests.cli.run import PROFILE, in_terminal, in_terminal_each


def test_text() -> None:
    text = succeeds("report", PROFILE)
    assert text.startswith("streams.pt.trace.json.gz  PyTorch · NVIDIA H200 · inference · 2 steps\n")
    assert "where the time goes  mean of 2 steps" in text
    assert f"stepscope serve {PROFILE}" in text or "stepscope serve PATH" in text
    assert len(text.splitlines()) <= 25
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text


@pytest.mark.parametrize("more", [("--full",), ("-v",), ("--limit", "10"), ("--by", "shapes")])
def test_everything(more: tuple[str, ...]) -> None:
    text = succeeds("report", PROFILE, *more)
    assert text.startswith("streams.pt.trace.json.gz\n  PyTorch · NVIDIA H200 · inference · 2 steps · ")
    assert "\ncoverage\n" in text


def test_a_file_has_what_is_printed(tmp_path: Path) -> None:
    succeeds("report", PROFILE, "-o", tmp_path / "short.txt")
    succeeds("report", PROFILE, "--full", "-o", tmp_path / "long.txt")
    assert (tmp_path / "short.txt").read_text("utf-8") == succeeds("report", PROFILE)
    assert (tmp_path / "long.txt").read_text("utf-8") == succeeds("report", PROFILE, "--full")


def test_json() -> None:
    found = json.loads(succeeds("report", PROFILE, "--format", "json"))
    assert found["schema"] == "stepscope.report/2"
    assert found["steps"]["count"] == 2
    assert all(sum(row["parts"].values()) == row["duration_ns"] for row in found["steps"]["rows"])
    assert not [problem for problem in found["problems"] if problem["code"] == "analysis-failed"]


@pytest.mark.parametrize(
    ("name", "begin"),
    [("r.html", "<!doctype html>"), ("r.json", "{"), ("r.md", "# streams"), ("r.txt", "streams.pt.trace")],
)
def test_the_name_says_the_form(tmp_path: Path, name: str, begin: str) -> None:
    ended = stepscope("report", PROFILE, "-o", tmp_path / name)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert (tmp_path / name).read_text("utf-8").startswith(begin)
    assert ended.stderr.rstrip().endswith(f"Wrote {tmp_path / name}")


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    target = tmp_path / "r.html"
    target.write_text("mine")
    refused = stepscope("report", PROFILE, "-o", target)
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert target.read_text() == "mine"
    succeeds("report", PROFILE, "-o", target, "--force")
    assert target.read_text("utf-8").startswith("<!doctype html>")


def test_csv(tmp_path: Path) -> None:
    one = succeeds("report", PROFILE, "--format", "csv", "--section", "ops")
    assert one.startswith("name,calls,")
    succeeds("report", PROFILE, "--format", "csv", "-o", tmp_path / "tables")
    assert (tmp_path / "tables" / "ops.csv").read_text("utf-8") == one
    refused = stepscope("report", PROFILE, "--format", "csv")
    assert refused.returncode == 1
    assert "--section" in refused.stderr


def test_sections_steps_and_limits() -> None:
    text = succeeds("report", PROFILE, "--section", "ops", "-n", "1")
    assert "where the time goes" not in text
    assert "… 1 of " in text
    assert "--limit 0 shows all" in text
    assert "shows all" not in succeeds("report", PROFILE, "--section", "ops", "-n", "0")
    found = json.loads(succeeds("report", PROFILE, "--format", "json", "--step", "2"))
    assert [row["step"] for row in found["steps"]["rows"]] == [2]


@pytest.mark.parametrize(
    "arguments",
    [("--step", "x"), ("--section", "nope"), ("--rank", "5"), ("--format", "nope"), ("--limit", "-1")],
)
def test_nonsense_is_refused_in_words(arguments: tuple[str, str]) -> None:
    ended = stepscope("report", PROFILE, *arguments)
    assert ended.returncode in (1, 2)
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_the_schema_needs_no_profile() -> None:
    assert json.loads(succeeds("report", "--schema"))["$defs"]["Report"]


def test_help_names_every_section() -> None:
    assert SECTIONS.split(", ") == list(ORDER)
    assert FORMS.split(", ") == [renderer.name for renderer in RENDERERS]


def test_forms_by_name() -> None:
    assert [form_of(Path(name)) for name in ("a.HTML", "a.htm", "a", "a.md")] == [
        "html",
        "html",
        "text",
        "md",
    ]


@pytest.mark.skipif(os.name == "nt", reason="a terminal of Unix")
def test_a_terminal_gets_no_orders(tmp_path: Path) -> None:
    forms = ("text", "json", "md")
    path = write_hostile(tmp_path)
    shown = in_terminal_each(*(("report", path, "--format", form, "--color", "never") for form in forms))
    for text in shown:
        assert "hostile" in text
        assert not any(sign in text for sign in ("\x1b[2J", "\x07", "\u202e"))


def test_a_page_is_not_for_terminals() -> None:
    if os.name != "nt":
        assert "HTML output needs a file." in in_terminal("report", PROFILE, "--format", "html")


def test_csv_of_hostile_names(tmp_path: Path) -> None:
    path = write_hostile(tmp_path)
    for name, more in (("safe", ()), ("raw", ("--raw",))):
        succeeds("report", path, "--format", "csv", "-o", tmp_path / name, *more)
    starts = {
        name: {
            cell[:1]
            for file in (tmp_path / name).glob("*.csv")
            for row in csv.reader(io.StringIO(file.read_text("utf-8")))
            for cell in row
            if not re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)
        }
        for name in ("safe", "raw")
    }
    assert not starts["safe"] & set("=+-@")
    assert starts["raw"] & set("=+-@")
