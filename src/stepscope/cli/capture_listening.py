"""The part of `stepscope capture` that talks to processes that listen."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from stepscope.capture.remote import ask
from stepscope.capture.remote.orders import BEFORE, WARMUP
from stepscope.cli.console import Talk


def addresses(targets: Iterable[str]) -> list[Path]:
    """The sockets of processes that are given by their numbers or by paths."""
    return [ask.address_of(target) for target in targets]


def show_listening(talk: Talk) -> bool:
    """A line for each process that listens; False, with what to do, if there is none."""
    found = ask.statuses()
    for about in found:
        rank = "" if about.get("rank") is None else f", rank {about['rank']}"
        command = shlex.join(map(str, about.get("command", [])))
        talk.out.print(f"{about.get('pid')}  step {about.get('step')}{rank}  {command}")
    if not found:
        talk.warn(
            "No process listens. Start the job with STEPSCOPE_LISTEN=1, or call stepscope.listen() in it."
        )
    return bool(found)


def from_processes(talk: Talk, paths: list[Path], request: dict[str, Any], timeout: float) -> list[Path]:
    """All at once; workers of one job begin with the same step."""
    if len(paths) > 1:
        now = max(int(ask.status(path).get("step") or 0) for path in paths)
        request["first"] = now + BEFORE + WARMUP + 1
    with ThreadPoolExecutor(len(paths)) as pool:
        found = list(pool.map(lambda path: _from_process(talk, path, request, timeout), paths))
    return [path for files in found for path in files]


def _from_process(talk: Talk, path: Path, request: dict[str, Any], timeout: float) -> list[Path]:
    state: dict[str, Any] = {}
    for state in ask.order(path, request, timeout):
        if state.get("state") == "recording":
            talk.note(f"{path.stem}: recording steps {state.get('first')} to {state.get('last')}")
    told = _what_became(path.stem, state, timeout)
    if told:
        talk.warn(told)
    for problem in state.get("problems", []):
        talk.warn(f"{path.stem}: {problem.get('title')}. {problem.get('detail')} {problem.get('fix')}")
    return [Path(name) for name in state.get("files", [])]


def _what_became(name: str, state: dict[str, Any], timeout: float) -> str:
    """Of an order whose last news is this; nothing where all is well."""
    match state.get("state"):
        case "done":
            return ""
        case "refused":
            return f"{name} does not record: {state.get('why')}."
        case "gone":
            return f"{name} ended, or stopped listening, before the steps were recorded."
        case "recording":
            return f"{name} has not ended the steps within {timeout:g} s; it goes on recording."
    return (
        f"{name} has not ended a step within {timeout:g} s. If its loop is one that stepscope does not find, put "
        "stepscope.step() at the end of the loop's body."
    )
