"""The outcome of a job under `stepscope run`, and the next command to type."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.capture.launch.environment import Plan

Note = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The text, and whether a profile was written."""

    text: str
    is_good: bool


def outcome(plan: Plan, notes: Sequence[Note], folder: str, command: Sequence[str]) -> Outcome:
    """The outcome, from the notes of the job's processes."""
    recorded = [note for note in notes if note.get("files")]
    if recorded:
        return Outcome(_recorded(plan, recorded, folder), True)
    itself = next((note["records_itself"] for note in notes if note.get("records_itself")), None)
    if itself is not None:
        text = f"The job already records a profile itself, so stepscope run recorded nothing.\nNext: stepscope report {shlex.quote(itself)}"
        return Outcome(text, True)
    return Outcome(_nothing(plan, notes, command), False)


def _recorded(plan: Plan, notes: Sequence[Note], folder: str) -> str:
    workers = "" if len(notes) == 1 else f" of {len(notes)} workers"
    last = min(plan.last, max(int(note.get("steps") or 0) for note in notes) - 1)
    early = "" if last == plan.last else f" (the job ended before step {plan.last})"
    which = f"step {plan.first}" if last <= plan.first else f"steps {plan.first} to {last}"
    if plan.repeat != 1 and last == plan.last:
        windows = max(int(note.get("steps") or 0) for note in notes) // plan.cycle
        which = f"{windows} window{'s' * (windows != 1)}, {which} and so on every {plan.cycle} steps,"
    lines = [f"Recorded {which}{workers}{early} into {folder}."]
    return "\n".join([*lines, *_problems(notes), f"Next: stepscope report {folder}"])


def _nothing(plan: Plan, notes: Sequence[Note], command: Sequence[str]) -> str:
    problems = _problems(notes)
    steps = max((int(note.get("steps") or 0) for note in notes), default=0)
    again = f"stepscope run --steps {{}} -- {shlex.join(command)}"
    if steps and not problems:
        last = max(0, steps - 1)
        first = min(max(0, steps - 5), max(0, last - 1))
        return (
            f"Nothing was recorded: the job made {steps} step{'s' * (steps != 1)}, but steps {plan.first} to {plan.last} were requested.\n"
            f"Next: {again.format(f'{first}:{last}')}"
        )
    if problems:
        return "\n".join(["Nothing was recorded.", *problems, "Next: stepscope doctor"])
    if notes:
        frameworks = ", ".join(sorted({name for note in notes for name in note.get("frameworks", ())}))
        return (
            f"Nothing was recorded: no training loop was detected in a job with {frameworks or 'no framework'}. stepscope looks for optimizers "
            "of torch.optim, data loaders, Keras batches and JAX step markers.\n"
            "Next: call stepscope.step() at the end of the loop's body, and run this again."
        )
    return (
        "Nothing was recorded: no Python process of the job imported PyTorch, TensorFlow or JAX, or counted a step. stepscope does not "
        "reach Python processes started with -I, -E or -S, or on another machine.\n"
        f"Next: stepscope doctor{_script(command)}"
    )


def _script(command: Sequence[str]) -> str:
    found = next((word for word in command if word.endswith(".py") and Path(word).is_file()), None)
    return "" if found is None else f" {shlex.quote(found)}"


def _problems(notes: Sequence[Note]) -> list[str]:
    found = {
        f"{row.get('title')}. {row.get('detail')} {row.get('fix')}".strip()
        for note in notes
        for row in note.get("problems") or []
        if isinstance(row, dict)
    }
    return sorted(found)[:5]
