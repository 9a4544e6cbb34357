"""The example plug-ins, installed as a user would, and used through the command line; and plug-ins that are broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.cases import case_of_text, gemm, steps
from tests.builders.files import write_kineto
from tests.builders.kineto_steps import checkpoint_steps

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all three examples."""
    target, work = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("build")
    shutil.copytree(EXAMPLES, work, dirs_exist_ok=True)  # a build leaves files beside its sources
    folders = [str(path.parent) for path in sorted(work.glob("*/pyproject.toml"))]
    assert len(folders) == 3
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, *folders], check=True)
    return target


def run(site: Path, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line, with the packages in `site`."""
    paths = os.pathsep.join([str(site), str(SOURCES), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "stepscope", *map(str, words)],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def write_profile(path: Path) -> Path:
    """Three steps of PyTorch that save a checkpoint while the device waits."""
    return write_kineto(path, *checkpoint_steps(), deviceProperties=[{"id": 0}])


def test_a_finding(installed: Path, tmp_path: Path) -> None:
    profile = write_profile(tmp_path / "job.pt.trace.json")
    ended = run(installed, "report", profile, "--format", "json", "--no-cache")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["findings"][0]
    assert (found["code"], found["title"]) == ("file-io", "The device waits for files")
    assert 0.6 < found["share"] < 0.75
    (tmp_path / "budget.toml").write_text('findings = ["file-io"]')
    checked = run(installed, "check", profile, "--budget", tmp_path / "budget.toml")
    assert "file-io" in checked.stdout + checked.stderr
    assert checked.returncode not in (0, 1), checked.stderr


def test_a_renderer(installed: Path, tmp_path: Path) -> None:
    profile = write_profile(tmp_path / "job.pt.trace.json")
    printed = run(installed, "report", profile, "--format", "brief")
    assert "x file-io: The device waits for files\n" in printed.stdout, printed.stderr
    run(installed, "report", profile, "-o", tmp_path / "out.brief")
    assert (tmp_path / "out.brief").read_text() == printed.stdout


def test_a_format(installed: Path, tmp_path: Path) -> None:
    lines = ["spans/1", *(f"main,work,{100 * k},90" for k in range(5)), "nonsense"]
    (tmp_path / "run.spans").write_text("\n".join(lines) + "\n")
    ended = run(
        installed, "query", tmp_path, "SELECT count(*) AS n, sum(dur_ns) AS ns FROM events", "--format", "csv"
    )
    assert ended.stdout.split() == ["n,ns", "5,450000"], ended.stderr
    report = json.loads(run(installed, "report", tmp_path, "--format", "json", "--no-cache").stdout)
    assert report["profile"]["format"] == "spans"
    assert [
        (each["title"], each["count"]) for each in report["problems"] if each["code"] == "damaged-events"
    ] == [("Some lines of the file are not events", 1)]


def test_without_the_plugins_nothing_is_known_of_them(tmp_path: Path) -> None:
    (tmp_path / "run.spans").write_text("spans/1\nmain,work,0,90\n")
    ended = run(tmp_path, "info", tmp_path)
    assert ended.returncode == 1
    assert "No profile found" in ended.stderr


def test_a_rule_of_a_plugin_can_be_tested_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "finding_example"))
    from stepscope_file_io import RULE

    found = RULE.findings(case_of_text(steps("main  0  700  checkpoint  annotation  -", *gemm(700, 285))))
    assert [each.code for each in found] == ["file-io"]
    assert RULE.findings(case_of_text(steps(*gemm(0, 985)))) == []


def offer(site: Path, group: str, entry: str, code: str = "") -> None:
    """A package with this entry point; `code` is its module `mine`."""
    folder = site / "broken-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
    if code:
        (site / "mine.py").write_text(code)


RULE = """
from stepscope.analysis.findings.rule import ANY, Rule
def find(case):
    case.claim(case.unclaimed)
    raise ValueError("no luck")
RULE = Rule(code={code!r}, title="t", turn=1, owns="", change="", fix={{ANY: "f"}}, find=find)
"""
BROKEN = [
    ("stepscope.findings", "x = no_such_module:RULE", "", "ModuleNotFoundError"),
    ("stepscope.findings", "x = mine:RULE", "RULE = 3", "it offers a int, not a Rule"),
    ("stepscope.findings", "x = mine:RULE", RULE.format(code="input-bound"), "input-bound is already taken"),
    ("stepscope.findings", "x = mine:RULE", RULE.format(code="straggler"), "straggler is already taken"),
    ("stepscope.findings", "x = mine:RULE", RULE.format(code="new"), "ValueError: no luck"),
    ("stepscope.formats", "x = no_such_module:FORMAT", "", "ModuleNotFoundError"),
    ("stepscope.renderers", "x = mine:RENDERER", "raise RuntimeError('old')", "RuntimeError: old"),
]


@pytest.mark.parametrize(("group", "entry", "code", "fault"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_plugin_is_one_warning(
    tmp_path: Path, group: str, entry: str, code: str, fault: str
) -> None:
    offer(tmp_path / "site", group, entry, code)
    profile = write_profile(tmp_path / "job.pt.trace.json")
    ended = run(
        tmp_path / "site", "report", profile, "--format", "json", "--no-cache", "--section", "findings",
        "--section", "breakdown",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("The plug-in x (broken, ") == 1
    assert fault in ended.stderr
    # Time that the broken rule claimed is there for others.
    assert json.loads(ended.stdout)["breakdown"]
    assert "Traceback" not in ended.stderr
