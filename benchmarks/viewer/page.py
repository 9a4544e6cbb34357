"""The page in a real Chromium without a GPU: when it paints, how long frames and tiles take, what it holds.

The time of a frame is what the page's main thread spends on it as Chromium itself records it: script, layout,
painting and the rasterising of the canvas. A tile's latency is from the request to its last byte, as the browser's network
records it; when the page has it in hands depends on the frame that is being painted, and is told beside.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.viewer.server import Served
from tests.browser.chromium import ARGUMENTS, chromium

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

SIZE: ViewportSize = {"width": 1920, "height": 1560}
PATIENCE_S = 60
# Held keys and for how long: in, right, left, out, and so on, over all levels of detail.
MOVES = (
    ("w", 1.5), ("d", 0.8), ("a", 0.8), ("w", 1.5), ("d", 0.8), ("s", 1.2), ("a", 0.8), ("s", 2.5),
    ("w", 2.5), ("a", 0.8), ("s", 2.5),
)  # fmt: skip
# The moment of the first frame in which the page has the cards of a report.
FIGURES = """
  const look = () => {
    if (document.querySelector(".cards .card b")) requestAnimationFrame((now) => { window.figuresAt = now; });
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
"""
FRAME = "ProxyMain::BeginMainFrame"
TILES = """performance.getEntriesByType("resource").filter((each) => each.name.includes("/timeline/tiles")).map((each) => each.duration)"""


@dataclass(frozen=True)
class Seen:
    """All figures in ms and bytes."""

    first_paint_ms: float
    frames_ms: list[float]
    per_second: float
    tiles_ms: list[float]
    in_hands_ms: list[float]
    rows: int
    page_bytes: int
    server: dict[str, int]


@contextmanager
def _opened() -> Iterator[tuple[Any, Any]]:
    """A browser with an empty page."""
    from playwright.sync_api import sync_playwright

    found = chromium()
    if found is None:
        raise SystemExit("There is no Chromium: name one in STEPSCOPE_CHROMIUM.")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield browser, browser.new_page(viewport=SIZE)
        browser.close()


def look(served: Served) -> Seen:
    """Open the trace, zoom and pan through it."""
    with _opened() as (browser, page):
        served.sign_in(page)
        first = _first_paint(page, served)
        _settle(page)
        page.mouse.move(1000, 700)
        page.evaluate(
            "stepscopeTimeline.tiles.latencies.length = 0; performance.clearResourceTimings(); performance.setResourceTimingBufferSize(10000)"
        )
        browser.start_tracing(page=page, categories=["cc"])
        begun = time.monotonic()
        rows = _move(page)
        seconds = time.monotonic() - begun
        frames = _frames(json.loads(browser.stop_tracing()))
        return Seen(
            first_paint_ms=first,
            frames_ms=frames,
            per_second=len(frames) / seconds,
            tiles_ms=page.evaluate(TILES),
            in_hands_ms=page.evaluate("stepscopeTimeline.tiles.latencies"),
            rows=rows,
            page_bytes=_page_bytes(browser),
            server=served.memory(),
        )


def first_figures(served: Served) -> float:
    """ms from when the first page of the run began to load until its figures were on it."""
    with _opened() as (_browser, page):
        page.add_init_script(FIGURES)
        served.sign_in(page)
        page.goto(served.link("overview"), wait_until="commit")
        _wait_until(page, "window.figuresAt > 0")
        return float(page.evaluate("figuresAt"))


def _first_paint(page: Any, served: Served) -> float:
    """ms from when the page began to load until slices were on it."""
    page.goto(served.link(), wait_until="commit")
    asked = "window.stepscopeTimeline ? stepscopeTimeline.firstPaint : 0"
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with suppress(Exception):  # the page is still loading
            found = float(page.evaluate(asked))
            if found:
                return found
        time.sleep(0.02)
    raise SystemExit("the trace was never painted")


def _settle(page: Any) -> None:
    """Until the rows that come later are there."""
    end = time.monotonic() + PATIENCE_S
    asked = "stepscopeTimeline.ranks[0].layers.length >= 2 && !stepscopeTimeline.tiles.running"
    while time.monotonic() < end and not page.evaluate(asked):
        time.sleep(0.1)
    # Curves are no rows: with them folded, sixty rows fit onto a large screen.
    page.evaluate(
        """() => {
          const { lines, arrangement } = stepscopeTimeline;
          for (const line of lines) if (line.kind === "counter") arrangement.folded.add(line.key);
          stepscopeTimeline.arrange();
        }"""
    )
    time.sleep(1.5)


def _move(page: Any) -> int:
    """Hold the keys; returns the least number of rows that were in view."""
    rows = []
    for key, seconds in MOVES:
        page.keyboard.down(key)
        time.sleep(seconds)
        page.keyboard.up(key)
        rows.append(int(page.evaluate("stepscopeTimeline.painter.rowsPainted")))
    return min(rows)


def _frames(trace: dict[str, Any]) -> list[float]:
    events = trace["traceEvents"]
    return [event["dur"] / 1000 for event in events if event.get("name") == FRAME and event.get("ph") == "X"]


def _page_bytes(browser: Any) -> int:
    """What the page's own process has to itself."""
    told = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    pids = [each["id"] for each in told["processInfo"] if each["type"] == "renderer"]
    return max(_private(pid) for pid in pids)


def _private(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def _wait_until(page: Any, condition: str) -> None:
    """By asking again and again: the page's policy forbids to evaluate texts inside of it."""
    deadline = time.monotonic() + PATIENCE_S
    while not page.evaluate(condition):
        if time.monotonic() > deadline:
            raise TimeoutError(condition)
        time.sleep(0.01)
