"""What `stepscope run` does: reads its arguments, starts the job with the recorder in it, and says what came of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.capture.command.outcome import outcome
from stepscope.capture.command.supervise import end_by_signal, supervise
from stepscope.capture.command.talk import Talk
from stepscope.capture.launch.environment import Plan, environment, read_notes
from stepscope.capture.trial.plan import WITH
from stepscope.capture.trial.settings import read_settings

DEFAULT_STEPS = "10:15"
DEFAULT_FOLDER = "stepscope-out"
COMMAND_NOT_FOUND, COMMAND_NOT_RUNNABLE = 127, 126


class WrongUsage(ValueError):
    """Arguments that make no sense, in words."""


@dataclass(frozen=True)
class Job:
    """A command, which of its steps are recorded, and where to."""

    words: list[str]
    steps: tuple[int, int]
    folder: Path = Path(DEFAULT_FOLDER)
    repeat: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    listen: bool = False
    settings: Path | None = None  # of `stepscope try`


def steps_of(text: str) -> tuple[int, int]:
    """`10:15` is the steps 10 to 15, both included; `10` is one, `:5` begins with the first."""
    match = re.fullmatch(r"(\d{0,9})(:)?(\d{1,9})?", text.strip())
    if match is None or not (match[1] or match[3]):
        raise WrongUsage(f"invalid step range {text!r}; write for example 10:15")
    first = int(match[1] or 0)
    if match[2] and not match[3]:
        raise WrongUsage("the range has no end; write for example 10:15")
    last = int(match[3]) if match[2] else first
    if last < first:
        raise WrongUsage(f"the range {text!r} ends before it starts")
    return first, last


def keep_of(text: str) -> int | str | None:
    """As `Profiler` takes it: a number of windows, None for all, or its own default."""
    if text == "newest":
        return text
    if text == "all":
        return None
    if re.fullmatch(r"[1-9]\d{0,8}", text) is None:
        raise WrongUsage(f"{text!r} is not a number of windows: use 10, or all")
    return int(text)


def command_of(words: list[str]) -> list[str]:
    """`-m module` and `script.py` run under this Python; anything else is a command."""
    if words and words[0] == "--":
        words = words[1:]
    if not words:
        raise WrongUsage("no command given; write for example: stepscope run -- python train.py")
    script = Path(words[0])
    if words[0] == "-m" or (script.suffix == ".py" and script.is_file() and not os.access(script, os.X_OK)):
        return [sys.executable, *words]
    return words


def record(job: Job, talk: Talk) -> int:
    """The exit code of the job, negative for the signal that ended it."""
    with tempfile.TemporaryDirectory(prefix="stepscope-run-") as notes:
        plan = Plan(str(job.folder.absolute()), *job.steps, notes, job.options, job.repeat)
        try:
            code = supervise(job.words, environment(plan, os.environ, listen=job.listen) | _changes(job))
        except OSError as error:
            return _not_started(job.words[0], error, talk)
        result = outcome(plan, list(read_notes(Path(notes))), shlex.quote(str(job.folder)), job.words, code)
        (talk.note if result.is_good else talk.warn)(result.text)
    return code


def _changes(job: Job) -> dict[str, str]:
    """For the environment of the job: what a trial found to be worth it."""
    return {} if job.settings is None else {WITH: json.dumps(read_settings(job.settings))}


def _not_started(name: str, error: OSError, talk: Talk) -> int:
    if isinstance(error, FileNotFoundError):
        talk.fail(f"Command not found: {name}", "Check its name, or give its path.")
        return COMMAND_NOT_FOUND
    if isinstance(error, PermissionError):
        talk.fail(
            f"{name} is not executable.", f"For a Python script: stepscope run -- python {shlex.quote(name)}"
        )
        return COMMAND_NOT_RUNNABLE
    raise error


def end_like(code: int) -> int:
    """The exit code of the job; does not return if a signal ended it, but ends by the same one."""
    if code < 0:
        end_by_signal(-code)
    return code
