"""`stepscope demo`: the samples that ship with stepscope, explained and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.opened import opened
from stepscope.cli.options import ColorOption, QuietOption
from stepscope.cli.serve import LOOPBACK, serve
from stepscope.errors import StepscopeError

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
ENDINGS = (".json.gz", ".pb.gz", ".json", ".pb")


def demo(
    no_serve: Annotated[bool, typer.Option("--no-serve", help="Only the report; do not start the page.")] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    port: Annotated[int, typer.Option("-p", "--port", metavar="N", min=0, max=65535, help="Where the page listens; 0 for any free port.")] = 0,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Explain a profile that ships with stepscope, then show it on a page: no recording of your own is needed."""
    with session(quiet, False, color) as talk:
        from stepscope.cli.reporting import print_brief
        from stepscope.reports.build import report

        for sample in _list_samples():
            talk.note(f"$ stepscope report {sample}")
            profile = opened(talk, str(sample), None, None, False)
            with talk.working("Analysing"):
                found = report(profile)
            print_brief(talk, found, [str(sample)], None, False)
    if not no_serve:
        serve([str(SAMPLES)], port=port, host=LOOPBACK, no_open=no_open, quiet=quiet, color=color)


def _list_samples() -> list[Path]:
    found = sorted(path for path in SAMPLES.glob("*") if path.name.endswith(ENDINGS))
    if not found:
        raise StepscopeError(
            f"The samples are missing from {SAMPLES}.",
            fix="Reinstall stepscope: pip install --force-reinstall stepscope.",
        )
    return found
