"""The command to type after a recording."""

from __future__ import annotations

from importlib.util import find_spec


def report_of(folder: str) -> str:
    """The command, and what it needs where only the recorder is installed; `folder` is quoted for a shell."""
    command = f"Next: stepscope report {folder}"
    if find_spec("stepscope.reports") is not None:
        return command
    return f"{command}, here or on another machine, after pip install stepscope"
