"""The commonest command lines, read without the library that reads all others: importing that takes longer than to show a report that was kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.cli.reporting import ReportWish

_SWITCHES = {"--full": "full", "--no-cache": "no_cache", "-q": "quiet", "--quiet": "quiet"}
_COMPLETION = "_STEPSCOPE_COMPLETE"  # set by the shell that asks what may follow


def run_short(words: Sequence[str]) -> bool:
    """Whether this was such a command line: then it has been run."""
    wish = read_short(words)
    if wish is None:
        return False
    from stepscope.cli.reporting import run_report

    run_report(wish)
    return True


def read_short(words: Sequence[str]) -> ReportWish | None:
    """`report` of some paths, with no options but switches that need no checking; None for all else, mistakes included."""
    if words[:1] != ["report"] or os.name == "nt" or _COMPLETION in os.environ:
        return None  # Windows leaves it to the program to expand patterns
    options = [word for word in words[1:] if word.startswith("-")]
    paths = [word for word in words[1:] if not word.startswith("-")]
    if not paths or not set(options) <= set(_SWITCHES):
        return None
    from stepscope.cli.reporting import ReportWish

    switched: dict[str, Any] = {_SWITCHES[option]: True for option in options}
    return ReportWish(paths=paths, **switched)
