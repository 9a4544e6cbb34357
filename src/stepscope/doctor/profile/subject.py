"""A path with a profile, or with what is left of one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stepscope.analysis.options import Options
from stepscope.errors import NothingFound, StepscopeError, UnreadableFile
from stepscope.problems.folder import NEVER_WRITTEN
from stepscope.profiles.find.catalog import Catalog, scan
from stepscope.profiles.find.leftovers import empty_runs, leftovers, never_stopped
from stepscope.profiles.find.paths import Location, locate
from stepscope.profiles.load import LoadProgress, load
from stepscope.profiles.profile import Profile
from stepscope.reports.build import build
from stepscope.reports.model.report import Problem
from stepscope.reports.problems import reported

FOLDERS_LOOKED_AT = 10_000


@dataclass
class Examined:
    """What the checks of profiles look at: the folder's catalog, and the profile or why there is none."""

    catalog: Catalog
    profile: Profile | None = None
    error: StepscopeError | None = None

    @property
    def path(self) -> str:
        """As the user gave it, more or less."""
        return self.catalog.path

    @property
    def is_folder(self) -> bool:
        """Whether a whole folder was named, as one would for TensorBoard."""
        return self.catalog.folders > 0 and not Location(self.catalog.path).is_pattern

    @cached_property
    def problems(self) -> list[Problem]:
        """Exactly those of the report; without a profile, those of the folder."""
        if self.profile is not None:
            return build(self.profile, Options(), sections=["problems"]).problems
        found = [
            *leftovers(self.catalog.skipped),
            *never_stopped(self.catalog.skipped, _empty_runs(self.catalog)),
        ]
        return [reported(each) for each in found]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Bytes of each file that was read."""
        paths = [trace.info.path for trace in self.profile.traces] if self.profile is not None else []
        return {path: Path(path).stat().st_size for path in paths if Path(path).is_file()}


def needs_profile(subject: Examined) -> str:
    """Why nothing is said about a profile's content."""
    return "" if subject.profile is not None else "there is no profile to look at"


def _empty_runs(catalog: Catalog) -> list[str]:
    """Folders below plugins/profile with nothing in them, anywhere under the path."""
    if locate(catalog.path).filesystem is not None or not Path(catalog.path).is_dir():
        return []
    found: list[str] = []
    for looked_at, (folder, inside, _) in enumerate(os.walk(catalog.path)):
        if looked_at > FOLDERS_LOOKED_AT:
            break
        if Path(folder).parts[-2:] == ("plugins", "profile"):
            found += empty_runs(Path(folder)) if inside else [folder]
    return found


def examine_path(
    path: str, *, cache: bool = True, progress: LoadProgress | None = None, run: str | None = None
) -> Examined:
    """Look for a profile and read it. A path that is not there, or may not be read, is an error and no diagnosis."""
    try:
        catalog = scan(path)
    except NothingFound as error:
        raise NothingFound(error.what, fix=" ".join(filter(None, (error.fix, NEVER_WRITTEN)))) from None
    try:
        return Examined(catalog, load(path, cache=cache, progress=progress, run=run))
    except (NothingFound, UnreadableFile) as error:
        if catalog.folders == 0 and not catalog.looked_at:
            raise  # a pattern that matches nothing
        return Examined(catalog, error=error)
