"""The demo: what a newcomer sees first, wherever the package is."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

import stepscope as package
from stepscope.cli import demo
from tests.cli.inside import stepscope
from tests.cli.run import environment
from tests.patience import PATIENCE_S


def test_the_report_without_a_page() -> None:
    ended = stepscope("demo", "--no-serve")
    assert ended.returncode == 0, ended.stderr
    assert "compute" in ended.stdout
    assert "tiny_gpt" in ended.stderr


def test_then_the_page(tmp_path: Path) -> None:
    """From a copy of the package and another folder, as a wheel is installed."""
    sources = Path(package.__file__).parent
    shutil.copytree(sources, tmp_path / "site" / "stepscope", ignore=shutil.ignore_patterns("__pycache__"))
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "stepscope", "demo", "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(tmp_path / "site")},
    )
    try:
        assert process.stdout is not None
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        with urlopen(link, timeout=PATIENCE_S) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)


def test_missing_samples_are_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SAMPLES", tmp_path)
    ended = stepscope("demo", "--no-serve")
    assert ended.returncode == 1
    assert "samples are missing" in ended.stderr
