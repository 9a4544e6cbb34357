"""axe-core finds nothing serious on any page, each in one of the themes and in the soak in both; skipped where it is not installed
(`npm install`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import until
from tests.browser.test_pages import PAGES
from tests.sample import pairs

ROOT = Path(__file__).resolve().parents[2]
AXE = Path(os.environ.get("STEPSCOPE_AXE") or ROOT / "node_modules" / "axe-core" / "axe.min.js")
WORST = ("serious", "critical")
RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.map((each) => ({
    id: each.id, impact: each.impact, help: each.help, where: each.nodes.slice(0, 5).map((node) => [node.target.join(" "), node.failureSummary]),
  }));
}"""


def violations(page: Any) -> list[Any]:
    """What axe-core says is serious or worse."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE.read_text("utf-8"))
    return [each for each in page.evaluate(RUN) if each["impact"] in WORST]


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm install")
@pytest.mark.parametrize(("name", "theme"), pairs([*PAGES, "runs", "trace"], ["light", "dark"]))
def test_no_serious_violation(name: str, theme: str, page: Any, show: Callable[..., Any]) -> None:
    page.emulate_media(color_scheme=theme)
    try:
        if name == "trace":
            show(name, "kineto_gpu", events="op:aten::mm")
            until(page, "window.stepscopeTimeline?.marked.chosen && stepscopeTimeline.arriving === 0")
        else:
            show(name, None if name == "runs" else "kineto_gpu")
        assert violations(page) == []
    finally:
        page.emulate_media(color_scheme="light")
