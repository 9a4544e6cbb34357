"""Every page can be pasted and run: its blocks, one after the other, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.running import PATIENCE_SECONDS, ROOT, environment, needs
from tests.sample import in_soak

PAGES = sorted((ROOT / "docs" / "capture").glob("*.md"))
FRAMEWORKS = ("torch", "tensorflow", "jax", "keras", "lightning", "transformers", "tf_agents")
# What these show, test_listen.py, test_run.py and test_integrations.py do with the same frameworks; other pages import those, too.
TRIED_ELSEWHERE = ("keras", "lightning", "listen", "run", "session", "transformers")


def blocks(page: Path) -> str:
    """The page's Python, joined."""
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(found)


def used(page: Path) -> list[str]:
    """The frameworks that the page imports."""
    return [name for name in FRAMEWORKS if re.search(rf"^(import|from) {name}\b", blocks(page), re.MULTILINE)]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=[needs(*used(page)), *([in_soak] if page.stem in TRIED_ELSEWHERE else [])],
            id=page.stem,
        )
        for page in PAGES
        if blocks(page)
    ],
)
def test_the_page_runs(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(blocks(page), "utf-8")
    ended = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment(STEPSCOPE_CACHE=str(tmp_path / "cache"), KERAS_BACKEND=_keras_backend()),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]


def _keras_backend() -> str:
    return os.environ.get("KERAS_BACKEND", "tensorflow")
