"""`python -m stepscope.gate.action`: what the GitHub Action does between downloading a baseline and commenting.

It compares a profile with its baseline, writes the comment, the JUnit file and the outputs of the step, and saves the
profile as the next baseline. Nothing here needs GitHub, so it runs the same way on any machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path

from stepscope.diffs.build import Diff
from stepscope.diffs.build import diff as compare
from stepscope.errors import NothingFound, StepscopeError
from stepscope.gate.budget import Budget, growth, read_budget, with_baseline
from stepscope.gate.check import Gate, check
from stepscope.gate.comment import ERROR, FAIL, FIRST, PASS, UNKNOWN, write_comment
from stepscope.gate.junit import as_junit
from stepscope.gate.text import as_text
from stepscope.profiles.load import load
from stepscope.profiles.profile import Profile
from stepscope.reports.build import report
from stepscope.reports.render.markdown import text

EXIT_CODES = {PASS: 0, FIRST: 0, FAIL: 3, UNKNOWN: 3, ERROR: 1}
NO_BASELINE = "There was no baseline to compare with."
SAVED = "This run was saved as the baseline; the next run is compared with it."
UPDATED = "This run is the new baseline."
NO_STEPS = "The profile has no steps, so it was not saved as a baseline. Run `stepscope doctor` on it."


@dataclass(frozen=True)
class Request:
    """The inputs of the Action."""

    profile: str
    baseline: str = ""
    mode: str = "diff"
    budget: str = "budgets.toml"
    fail_on: tuple[str, ...] = ("5%",)
    strict: bool = False
    save: str = ""  # folder for the next baseline
    update: bool = False  # also where there was a baseline, if this run passed


@dataclass(frozen=True)
class Judged:
    """The outcome, and what it is based on."""

    outcome: str
    note: str = ""
    gate: Gate | None = None
    diff: Diff | None = None
    saved: bool = False


def judge(request: Request) -> Judged:
    """Compare the profile with its baseline and save it where that is due; errors are an outcome as well."""
    try:
        profile = load(request.profile)
        baseline = load_baseline(request.baseline)
        if baseline is None:
            return _judge_first(request, profile)
        limits = with_baseline(_read_limits(request), [request.baseline])
        gate = check(profile, limits, baseline=[baseline], strict=request.strict)
        found = Judged(outcome_of(gate), gate=gate, diff=compare(baseline, profile))
        if request.update and found.outcome == PASS and _save(request):
            return replace(found, note=UPDATED, saved=True)
        return found
    except StepscopeError as error:
        return Judged(ERROR, note=" ".join(filter(None, (error.what, error.fix))))


def load_baseline(path: str) -> Profile | None:
    """The baseline; None where there is none yet. One that exists and cannot be read is an error."""
    if not path or ("://" not in path and not Path(path).exists()):
        return None
    try:
        return load(path)
    except NothingFound:
        if Path(path).is_dir() and not any(each.is_file() for each in Path(path).rglob("*")):
            return None
        raise


def outcome_of(gate: Gate) -> str:
    """In one word."""
    return PASS if gate.passed else UNKNOWN if gate.is_unknown else FAIL


def _judge_first(request: Request, profile: Profile) -> Judged:
    """Without a baseline only absolute limits can be judged; the profile becomes the baseline if it can be one."""
    limits = _read_limits(request)
    if not (limits.baseline and limits.baseline.paths):
        limits = _without_growth(limits)
    gate = check(profile, limits, strict=request.strict) if limits != Budget() else None
    if report(profile, sections=["steps"]).steps.source in ("none", "whole"):
        return Judged(UNKNOWN, f"{NO_BASELINE} {NO_STEPS}", gate)
    saved = _save(request)
    note = f"{NO_BASELINE} {SAVED}" if saved else NO_BASELINE
    return Judged(FIRST if gate is None else outcome_of(gate), note, gate, saved=saved)


def _read_limits(request: Request) -> Budget:
    if request.mode == "check":
        return read_budget(Path(request.budget))
    return Budget(baseline=growth(request.fail_on))


def _without_growth(limits: Budget) -> Budget:
    regions = {name: _without_growth(each) for name, each in limits.regions.items()}
    kept = {name: each for name, each in regions.items() if each != Budget()}
    return replace(limits, baseline=None, regions=kept)


def _save(request: Request) -> bool:
    """Copy the files of the profile; a folder of an earlier baseline is replaced."""
    if not request.save or "://" in request.profile:
        return False
    target = Path(request.save)
    try:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for each in sorted(glob(request.profile)) or [request.profile]:  # noqa: PTH207 - patterns may be absolute
            _copy(Path(each), target)
    except OSError as error:
        raise StepscopeError(
            f"The baseline could not be saved in {target}: {error.strerror or error}.",
            fix="Check the disk, and that the folder is not inside the profile's own.",
        ) from error
    return True


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Do it, and return the exit code."""
    given = _make_parser().parse_args(arguments)
    request = Request(
        profile=given.profile,
        baseline=given.baseline,
        mode=given.mode,
        budget=given.budget,
        fail_on=tuple(filter(None, map(str.strip, given.fail_on.split(",")))) or ("5%",),
        strict=given.strict == "true",
        save=given.save,
        update=given.update == "true",
    )
    judged = judge(request)
    note = text(judged.note) if judged.outcome == ERROR else judged.note  # names in errors are untrusted
    comment = write_comment(given.key, judged.outcome, note=note, gate=judged.gate, diff=judged.diff)
    _write(given.comment, comment)
    if judged.gate is not None:
        _write(given.junit, as_junit(judged.gate))
    _append(environment.get("GITHUB_STEP_SUMMARY", ""), comment)
    outputs = f"outcome={judged.outcome}\nsaved={'true' if judged.saved else 'false'}\n"
    _append(environment.get("GITHUB_OUTPUT", ""), outputs)
    sys.stdout.write("".join(_list_words(judged)))
    return EXIT_CODES[judged.outcome]


def _list_words(judged: Judged) -> list[str]:
    """For the log of the job."""
    verdict = f"{judged.diff.verdict}\n" if judged.diff is not None else ""
    table = as_text(judged.gate) if judged.gate is not None else ""
    note = f"{judged.note}\n" if judged.note else ""
    return [verdict, table, note, f"outcome: {judged.outcome}\n"]


def _write(path: str, content: str) -> None:
    if path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content, "utf-8")


def _append(path: str, content: str) -> None:
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(content)


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m stepscope.gate.action", description=__doc__)
    parser.add_argument("--profile", required=True, help="the profile of this run: file, folder or pattern")
    parser.add_argument("--baseline", default="", help="folder of the baseline; may be missing or empty")
    parser.add_argument("--mode", choices=("check", "diff"), default="diff")
    parser.add_argument("--budget", default="budgets.toml", help="limits of `check`")
    parser.add_argument("--fail-on", default="5%", help="limits of `diff`, separated by commas")
    parser.add_argument("--strict", choices=("true", "false"), default="false")
    parser.add_argument("--save", default="", help="folder to save the next baseline in")
    parser.add_argument("--update", choices=("true", "false"), default="false")
    parser.add_argument("--comment", default="", help="file for the comment")
    parser.add_argument("--junit", default="", help="file for JUnit XML")
    parser.add_argument("--key", default="default", help="distinguishes comments of several jobs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
