"""The part of `stepscope capture` that talks to listening processes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from stepscope.capture.command.talk import Talk
from stepscope.capture.remote import ask
from stepscope.capture.remote.orders import BEFORE, WARMUP


def addresses(targets: Iterable[str]) -> list[Path]:
    """The sockets of processes that are given by their numbers or by paths."""
    return [ask.address_of(target) for target in targets]


def show_listening(talk: Talk) -> bool:
    """Print a line for each listening process; False, with the fix, if there is none."""
    found = ask.statuses()
    for about in found:
        rank = "" if about.get("rank") is None else f", rank {about['rank']}"
        command = shlex.join(map(str, about.get("command", [])))
        talk.result(f"{about.get('pid')}  step {about.get('step')}{rank}  {command}")
    if not found:
        talk.warn(
            "No process is listening. Start the job with STEPSCOPE_LISTEN=1, or call stepscope.listen() in it."
        )
    return bool(found)


def from_processes(talk: Talk, paths: list[Path], request: dict[str, Any], timeout: float) -> list[Path]:
    """Record from all at once; workers of one job start at the same step."""
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
    trouble = _what_became(path.stem, state, timeout)
    if trouble:
        talk.warn(trouble)
    for problem in state.get("problems", []):
        talk.warn(f"{path.stem}: {problem.get('title')}. {problem.get('detail')} {problem.get('fix')}")
    return [Path(name) for name in state.get("files", [])]


def _what_became(name: str, state: dict[str, Any], timeout: float) -> str:
    """What became of a request, by its last state; empty if it was done."""
    match state.get("state"):
        case "done":
            return ""
        case "refused":
            return f"{name} refused to record: {state.get('why')}."
        case "gone":
            return f"{name} exited or stopped listening before the steps were recorded."
        case "recording":
            return f"{name} did not complete the steps within {timeout:g} s; it keeps recording."
    return (
        f"{name} did not complete a step within {timeout:g} s. If stepscope does not detect its loop, call "
        "stepscope.step() at the end of the loop's body."
    )
