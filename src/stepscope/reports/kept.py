"""Reports that were made before: found without reading the profile, and shown without the libraries that analyse it.

A report is kept with all that it depends on: the state of every file it was made of (`profiles.answers`), the calibration of
this machine, and what was asked for. Plug-ins may compute anything: with one of those no report is kept.
"""

from __future__ import annotations

import msgspec

from stepscope.analysis.kernels import measured_peaks
from stepscope.errors import StepscopeError
from stepscope.formats.source import Source
from stepscope.lazy import dataclass
from stepscope.plugins import have_a_say
from stepscope.profiles.answers import identify_run
from stepscope.profiles.cache.answers import Answers
from stepscope.profiles.cache.place import state_of
from stepscope.profiles.find.catalog import Catalog, Places, choose, scan
from stepscope.profiles.find.runs import Run
from stepscope.registers.policy.tables import REPORT_ROWS
from stepscope.reports.report import Report

# These depend on the moment: on free memory, a full disk, a file that is being written.
PASSING = {"analysis-failed", "cache-unwritable", "file-changed", "unreadable-file"}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a report was asked for. `loaded_rank`: of a profile of which only this rank was read."""

    step: str | None = None
    step_name: str | None = None
    whole: bool = False
    rank: int | None = None
    loaded_rank: int | None = None
    sections: tuple[str, ...] | None = None
    limit: int = REPORT_ROWS
    ops_by: tuple[str, ...] = ()
    brief: bool = False

    @property
    def name(self) -> str:
        """Of the answer, with the calibration that it was computed with."""
        calibrated = state_of(Source(str(measured_peaks.location())))
        return f"report {msgspec.json.encode(self).decode()} {calibrated}"


@dataclass(frozen=True)
class KeptReports:
    """The reports of one run, in the state in which it was found."""

    run: Run
    catalog: Catalog | None
    answers: Answers

    def get(self, asked: Asked) -> Report | None:
        """The report, if it was made before."""
        data = self.get_json(asked)
        try:
            return None if data is None else msgspec.json.decode(data, type=Report)
        except (msgspec.MsgspecError, UnicodeError):
            return None

    def get_brief(self, asked: Asked) -> Report | None:
        """The report on one screen, or the whole one."""
        return self.get(msgspec.structs.replace(asked, brief=True)) or self.get(asked)

    def get_json(self, asked: Asked) -> bytes | None:
        """The same as JSON."""
        return self.answers.get(asked.name)

    def keep(self, asked: Asked, made: Report) -> Report:
        """Keep the report, unless it is one of a moment; returns it as it will be found, with every number of its type."""
        found = msgspec.json.decode(msgspec.json.encode(made), type=Report)
        if not any(problem.code in PASSING for problem in made.problems):
            self.keep_bytes(asked.name, msgspec.json.encode(found))
        return found

    def keep_bytes(self, name: str, data: bytes) -> None:
        """Keep any other answer, unless the files have changed since they were found."""
        if identify_run(self.run, self.catalog) == self.answers.identity:
            self.answers.keep(name, data)


def kept_reports(run: Run, catalog: Catalog | None = None) -> KeptReports | None:
    """Those of a run, in the catalog or on its own; None where none can be kept."""
    if have_a_say():
        return None
    identity = identify_run(run, catalog)
    return None if identity is None else KeptReports(run, catalog, Answers(identity))


def find_kept(places: Places, run: str | None = None) -> KeptReports | None:
    """Those of the run at a path, as `load` would choose it. What is wrong with the path is said by `load`."""
    try:
        catalog = scan(places)
        return kept_reports(choose(catalog, run), catalog) if catalog.runs else None
    except StepscopeError:
        return None
