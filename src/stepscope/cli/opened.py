"""The profile that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.cli.console import Talk

if TYPE_CHECKING:
    from stepscope.profiles.profile import Profile


def opened(talk: Talk, path: str | list[str], rank: int | None, run: str | None, no_cache: bool) -> Profile:
    """Load the profile, with a progress bar if that takes long."""
    from stepscope.profiles.load import load

    with talk.progress("Reading") as progress:
        return load(path, cache=not no_cache, progress=progress, rank=rank, run=run)
