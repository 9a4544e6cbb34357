"""Makes the pictures of the page in docs/images. Run it after the page has changed; it needs Chromium and playwright.

python -m docs.make_page_images [NAME …]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.browser.chromium import ARGUMENTS, chromium
from tests.browser.serving import serving

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
FIXTURES = ROOT / "tests" / "fixtures"
SIZE = ViewportSize(width=1280, height=760)
JOB = "import stepscope, time\nprint(stepscope.listen(), flush=True)\nwhile True:\n    time.sleep(0.01)\n    stepscope.step()\n"
QUERY = "SELECT name, COUNT(*) AS calls, SUM(dur_ns) AS total_ns\nFROM events\nWHERE kind = 'kernel'\nGROUP BY name\nORDER BY total_ns DESC\nLIMIT 20"
TALL = {"collectives": 1120}  # what is worth seeing lies further down
# What each picture shows: the page, the run, and more of its link.
PICTURES: dict[str, tuple[str, str, dict[str, str]]] = {
    "overview": ("overview", "gpt", {}),
    "runs": ("runs", "", {}),
    "steps": ("steps", "gpt", {}),
    "input": ("input", "gpt", {}),
    "ops": ("ops", "gpt", {"by": "shapes"}),
    "flame": ("flame", "gpt", {"tree": "stack"}),
    "kernels": ("kernels", "gpt", {}),
    "device": ("device", "gpt", {}),
    "memory": ("memory", "gpt", {}),
    "collectives": ("collectives", "two_ranks", {}),
    "compare": ("compare", "", {"a": "before", "b": "after"}),
    "doctor": ("doctor", "before", {}),
    "sql": ("sql", "gpt", {"query": QUERY}),
    "capture": ("overview", "gpt", {}),
    "trace": ("trace", "gpt", {}),
    "trace-event": (
        "trace",
        "gpt",
        {"start": "3851362344300000", "end": "3851362344700000", "event": "8887"},
    ),
}


def lay_out(folder: Path) -> None:
    """Profiles under names that a reader understands."""
    for name, source in {
        "gpt/tiny_gpt.pt.trace.json.gz": ROOT / "src/stepscope/samples/tiny_gpt.pt.trace.json.gz",
        "before/step.pt.trace.json.gz": FIXTURES / "diagnosis/torch_item.slow.pt.trace.json.gz",
        "after/step.pt.trace.json.gz": FIXTURES / "diagnosis/torch_item.mended.pt.trace.json.gz",
    }.items():
        (folder / name).parent.mkdir()
        shutil.copy(source, folder / name)
    shutil.copytree(FIXTURES / "capture_gpu/torch_ddp", folder / "two_ranks")
    shutil.copytree(FIXTURES / "jax", folder / "jax")
    shutil.copytree(FIXTURES / "tensorflow", folder / "tensorflow")


def take(page: Page, url: str, runs: dict[str, str], name: str) -> None:
    """One picture."""
    target, run, more = PICTURES[name]
    params = ({"run": runs[run]} if run else {}) | {
        key: runs.get(value, value) for key, value in more.items()
    }
    query = "&".join(f"{key}={quote(value)}" for key, value in params.items())
    page.goto("about:blank")
    page.set_viewport_size(SIZE | {"height": TALL.get(name, SIZE["height"])})
    page.goto(f"{url}#/{target}?{query}")
    page.locator(".room > *").first.wait_for()
    page.wait_for_timeout(400)
    for waiting in (".of.busy", ".wait", ".loading"):
        page.locator(waiting).first.wait_for(state="detached")
    if name == "capture":
        page.get_by_role("button", name="Capture").click()
    page.wait_for_timeout(3000 if target == "trace" else 800)
    page.screenshot(path=IMAGES / f"page-{name}.png")


@contextmanager
def listening(folder: Path, env: dict[str, str]) -> Iterator[None]:
    """A job to record from, under a name that a reader understands."""
    (folder / "train.py").write_text(JOB)
    command = ["python", "train.py"]
    job = subprocess.Popen(
        command, executable=sys.executable, cwd=folder, env=os.environ | env, stdout=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        job.kill()
        job.wait()


def main(names: list[str]) -> None:
    """All pictures, or those named."""
    with tempfile.TemporaryDirectory() as parent, sync_playwright() as started:
        folder = Path(parent) / "runs"
        folder.mkdir()
        lay_out(folder)
        env = {
            "PYTHONPATH": str(ROOT / "src"),
            "STEPSCOPE_SOCKETS": f"{parent}/s",
            "STEPSCOPE_CACHE": f"{parent}/cache",
        }
        with listening(Path(parent), env), serving("runs", env, Path(parent)) as served:
            wanted = {path.name for path in folder.iterdir()}
            runs = served.runs(lambda found: wanted <= found.keys())
            browser = started.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            served.sign_in(page)
            for name in names or PICTURES:
                take(page, served.url, runs, name)
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
