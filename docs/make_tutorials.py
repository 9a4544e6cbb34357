"""Runs the tutorials: every bash and python block of docs/tutorials, in order, in a copy of examples/.

    python -m docs.make_tutorials                    # run all pages, and fail where a command or an expectation does
    python -m docs.make_tutorials pytorch jax        # only these
    python -m docs.make_tutorials --write pytorch    # also put the real output, cut, into the text block behind each command

Needs an environment with the frameworks, such as .venv-frameworks. `<!-- expect: TEXT -->` before a block asks for TEXT in its output.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "tutorials"
PATIENCE_S = 600  # for one block: machines differ, and some are busy
LONGEST = 36  # lines of output that a page shows
_BLOCK = re.compile(
    r"(?P<expected>(?:^<!-- expect: .*? -->\n)*)^```(?P<kind>bash|python)\n(?P<code>.*?)^```\n(?P<shown>\n```text\n.*?^```\n)?",
    re.MULTILINE | re.DOTALL,
)
# What frameworks print about themselves, and the advice at the end of every report.
_CHATTER = re.compile(
    r"USDT:|\[[WE]\d{4} |[WIE]0000|GPU available|TPU available|💡|LeafSpec|UserWarning|check_worker|\*{9}|`Trainer\.fit`"
    r"|Setting OMP_NUM|'train_runtime'|^more |^ {11}stepscope serve"
)


@dataclass(frozen=True)
class Block:
    """A piece of code of a page."""

    kind: str
    code: str
    expected: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    """The page's code, in order."""
    return [_block(found) for found in _BLOCK.finditer(page.read_text("utf-8"))]


def _block(found: re.Match[str]) -> Block:
    return Block(found["kind"], found["code"], tuple(re.findall(r"expect: (.*?) -->", found["expected"])))


def run_page(page: Path) -> Iterator[str]:
    """The output of each block. Raises AssertionError where a command fails or says something else."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copytree(ROOT / "examples", place / "examples")
        environment = _environment(place)
        for block in blocks(page):
            place, output = _run(block, place, environment)
            yield output


def _environment(place: Path) -> dict[str, str]:
    """`stepscope`, `python` and `torchrun` are those of this interpreter, and frameworks use one thread and no device."""
    programs = place / "bin"
    programs.mkdir()
    for name, module in {
        "python": "",
        "stepscope": "-m stepscope",
        "torchrun": "-m torch.distributed.run",
    }.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (programs / name).chmod(0o755)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    ours = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": paths}
    # A busy machine takes long to import a framework: that is not a job without a loop.
    ours |= {"STEPSCOPE_CACHE": str(place / "cache"), "STEPSCOPE_PATIENCE": "300", "COLUMNS": "100"}
    return {**os.environ, **quiet, **ours}


def _run(block: Block, place: Path, environment: dict[str, str]) -> tuple[Path, str]:
    """Where the block leaves the shell, and its output."""
    last = Path(environment["STEPSCOPE_CACHE"]).parent / "place"
    if block.kind == "bash":
        command = ["bash", "-e", "-o", "pipefail", "-c", f'{block.code}\npwd > "{last}"']
    else:
        command = ["python", "-c", block.code]
    ended = subprocess.run(
        command,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 0, f"{block.code}\nended with {ended.returncode}:\n{ended.stdout[-4000:]}"
    for text in block.expected:
        assert text in " ".join(ended.stdout.split()), (
            f"{block.code}\ndid not say {text!r}:\n{ended.stdout[-4000:]}"
        )
    return (Path(last.read_text().strip()) if block.kind == "bash" else place), ended.stdout


def write_page(page: Path, outputs: list[str]) -> None:
    """Put the output of each block into the text block behind it, if there is one."""
    left = iter(outputs)

    def filled(found: re.Match[str]) -> str:
        output = next(left)
        if not found["shown"]:
            return found[0]
        return f"{found['expected']}```{found['kind']}\n{found['code']}```\n\n```text\n{_cut(output)}```\n"

    page.write_text(_BLOCK.sub(filled, page.read_text("utf-8")), "utf-8")


def _cut(output: str) -> str:
    """Without chatter, and at most LONGEST lines."""
    lines = [line.rstrip() for line in output.splitlines() if not _CHATTER.search(line)]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n").split("\n")
    return "".join(f"{line}\n" for line in (*text[:LONGEST], *(["…"] if len(text) > LONGEST else [])))


def main() -> int:
    """Run pages; the exit code is 1 where one fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="pages; all by default")
    parser.add_argument("--write", action="store_true", help="put the output into the pages")
    wanted = parser.parse_args()
    pages = [page for page in sorted(PAGES.glob("*.md")) if not wanted.names or page.stem in wanted.names]
    failed = [page.stem for page in pages if not _try(page, wanted.write)]
    print(
        f"{len(pages) - len(failed)} of {len(pages)} pages run"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


def _try(page: Path, write: bool) -> bool:
    begin = time.monotonic()
    try:
        outputs = list(run_page(page))
    except (AssertionError, subprocess.TimeoutExpired) as error:
        print(f"{page.stem}: FAILED\n{error}", flush=True)
        return False
    if write:
        write_page(page, outputs)
    print(f"{page.stem}: {len(outputs)} blocks in {time.monotonic() - begin:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
