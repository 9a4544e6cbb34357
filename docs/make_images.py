"""Makes the pictures of docs/images: what a terminal shows, and the report's web page. Run it after they have changed.

The page needs a Chromium or Chrome on the path; without one its picture stays as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 112
PAGE = (1280, 1500)
REPORT_LINES = 40  # the rest is tables


def terminal(*command: str) -> str:
    """What the command prints, with its colours."""
    env = os.environ | {
        "COLUMNS": str(WIDTH),
        "FORCE_COLOR": "1",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }
    env.pop("NO_COLOR", None)
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout


def picture(output: str, title: str) -> str:
    """The output as a drawing that fetches nothing: fonts are those of the reader's machine."""
    console = Console(
        record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(output.rstrip()))
    svg = console.export_svg(title=title, unique_id="stepscope")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace(
        "Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace"
    )


def screenshot(page: Path, target: Path) -> None:
    """The page as a browser shows it."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.stderr.write("no browser: the picture of the page stays as it is\n")
        return
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars")  # fmt: skip
    size = f"--window-size={PAGE[0]},{PAGE[1]}"
    command = [browser, *quiet, size, f"--screenshot={target}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """Pictures of the sample with the most to say."""
    samples = [path for path in (ROOT / "src/stepscope/samples").iterdir() if path.suffix != ".py"]
    sample = max(samples, key=lambda path: path.stat().st_size).relative_to(ROOT)
    images = ROOT / "docs" / "images"
    images.mkdir(exist_ok=True)
    stepscope = (sys.executable, "-m", "stepscope")
    for verb, lines in (("info", None), ("report", REPORT_LINES)):
        output = terminal(*stepscope, verb, "--no-cache", str(sample))
        shown = "\n".join(output.splitlines()[:lines])
        (images / f"{verb}.svg").write_text(
            picture(shown, f"stepscope {verb} {sample.name}"), encoding="utf-8"
        )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        terminal(*stepscope, "report", "--no-cache", str(sample), "-o", str(page))
        screenshot(page, images / "report.png")


if __name__ == "__main__":
    main()
