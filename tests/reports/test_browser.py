"""The web page in a real browser: tables sort and filter, marks tell what they are, and nothing is refused."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path

import pytest

from stepscope.diffs.data.model import Diff, Row, Run
from stepscope.diffs.render.html import as_html as diff_as_html
from stepscope.reports.model.report import OpRow
from stepscope.reports.render.html import as_html
from tests.browser.chromium import ARGUMENTS, chromium
from tests.builders.reports import KERNEL, MS, report
from tests.patience import PATIENCE_S

BROWSER = chromium()
QUIET = (*ARGUMENTS, "--headless", "--disable-dev-shm-usage", "--enable-logging=stderr")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome")


def opened(page: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the browser made of the page, and what it complained about."""
    path = folder / "page.html"
    path.write_text(page, "utf-8")
    command = [str(BROWSER), *QUIET, f"--user-data-dir={folder / 'user'}", "--dump-dom", path.as_uri()]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=PATIENCE_S
    )


def page_with_many_ops() -> str:
    """A page with a table that is long enough to be filtered and folded."""
    found = report()
    found.ops.rows = [
        OpRow(
            name=f"row {i}", calls=i, host_total_ns=MS, host_self_ns=MS, device_total_ns=0, device_self_ns=0
        )
        for i in range(60)
    ]
    return as_html(found)


def test_the_policy_lets_our_script_run(tmp_path: Path) -> None:
    ended = opened(page_with_many_ops(), tmp_path)
    assert '<html lang="en" class="stepscope js">' in ended.stdout
    assert "Refused" not in ended.stderr
    assert "CONSOLE" not in ended.stderr


def test_the_script_runs_on_a_diff_too(tmp_path: Path) -> None:
    row = Row(name="step", a=1e6, b=2e6, difference=1e6, relative=1.0, noise=1e4, significant=True)
    found = Diff(a=Run(path="a"), b=Run(path="b"), verdict="Longer.", significant=True, step=row, parts=[row])
    ended = opened(diff_as_html(found), tmp_path)
    assert '<button id="theme" type="button">' in ended.stdout  # the script has shown it
    assert "CONSOLE" not in ended.stderr


def test_the_page_can_be_used(tmp_path: Path) -> None:
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*/>', "", page_with_many_ops())
    script = Path(__file__).with_name("browser.js").read_text("utf-8")
    ended = opened(free.replace("</body>", f"<script>{script}</script></body>"), tmp_path)
    [title] = re.findall("<title>(.*?)</title>", ended.stdout, flags=re.DOTALL)[:1]
    seen = json.loads(html.unescape(title))
    durations = ["30.0 ms", "30.0 ms", "10.0 ms", "10.0 ms", "10.0 ms", "10.0 ms", "8.00 ms", "8.00 ms"]
    assert seen["falling"] == durations
    assert seen["rising"] == durations[::-1]
    assert seen["empty_last"] == ["–"]
    assert seen["tip"].startswith("compute: 10.5 ms, 72.4 %\nKernels run on the device.")
    assert seen["tip_is_shown"] == "visible"
    assert seen["full_name"] == KERNEL
    assert seen["themes"] == ["dark", "light"]
    assert seen["dimmed"] is True
    assert seen["filtered"] == 1
