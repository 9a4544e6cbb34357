"""Makes docs/images/info.svg: what a terminal shows for `stepscope info`. Run it after the output has changed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 112


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


def main() -> None:
    """One picture of the sample with the most to say."""
    samples = [path for path in (ROOT / "src/stepscope/samples").iterdir() if path.suffix != ".py"]
    sample = max(samples, key=lambda path: path.stat().st_size).relative_to(ROOT)
    output = terminal(sys.executable, "-m", "stepscope", "info", "--no-cache", str(sample))
    target = ROOT / "docs" / "images" / "info.svg"
    target.parent.mkdir(exist_ok=True)
    target.write_text(picture(output, f"stepscope info {sample.name}"), encoding="utf-8")


if __name__ == "__main__":
    main()
