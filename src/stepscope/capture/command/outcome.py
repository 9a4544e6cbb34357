"""The outcome of a job under `stepscope run`, and the next command to type."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.capture.command.next import report_of
from stepscope.capture.files.writer import SIDECAR
from stepscope.capture.launch.environment import Plan

Note = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The text, and whether a profile was written."""

    text: str
    is_good: bool


def outcome(plan: Plan, notes: Sequence[Note], folder: str, command: Sequence[str], code: int = 0) -> Outcome:
    """The outcome, from the notes of the job's processes; `code` is its exit code, negative for a signal."""
    found = _outcome(plan, notes, folder, command, code)
    snapshots = [str(path) for note in notes for path in note.get("snapshots") or ()]
    if not snapshots:
        return found
    return Outcome(f"{found.text}\nOut of memory: stepscope report {shlex.quote(snapshots[0])}", True)


def _outcome(plan: Plan, notes: Sequence[Note], folder: str, command: Sequence[str], code: int) -> Outcome:
    recorded = [note for note in notes if note.get("files")]
    whole = [note for note in notes if note.get("whole_files")]
    if recorded:
        _remove(plan, whole)
        return Outcome(_recorded(plan, recorded, folder), True)
    itself = next((note["records_itself"] for note in notes if note.get("records_itself")), None)
    if itself is not None:
        text = f"The job already records a profile itself, so stepscope run recorded nothing.\n{report_of(shlex.quote(itself))}"
        return Outcome(text, True)
    if whole:
        return Outcome(_as_a_whole(plan, whole, folder, command), True)
    if not notes and code:
        return Outcome(_failed(code, command), False)
    return Outcome(_nothing(plan, notes, command), False)


def _failed(code: int, command: Sequence[str]) -> str:
    """A job that left no word: what it would have recorded went with it."""
    try:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    except ValueError:  # a signal without a name
        how = f"was ended by signal {-code}"
    return f"Nothing was recorded: the job {how}.\nNext: {shlex.join(command)}, to see whether it also does without stepscope."


def _remove(plan: Plan, notes: Sequence[Note]) -> None:
    """Launchers and helpers show no loop: where another process recorded steps, their recordings are in the way."""
    for text in (text for note in notes for text in note["whole_files"]):
        trace = Path(str(text))
        if trace.is_relative_to(plan.folder):
            for path in (trace, *_sidecars(trace)):
                path.unlink(missing_ok=True)


def _sidecars(trace: Path) -> list[Path]:
    """The note that was published with the trace: same folder, same stem."""
    stems = {path: path.name.removesuffix(SIDECAR) for path in trace.parent.glob(f"*{SIDECAR}")}
    fitting = [path for path, stem in stems.items() if trace.name.startswith(f"{stem}.")]
    return sorted(fitting, key=lambda path: len(path.name))[-1:]


def _as_a_whole(plan: Plan, notes: Sequence[Note], folder: str, command: Sequence[str]) -> str:
    """What was recorded of a job that made too few steps, or showed no loop."""
    steps = max(int(note.get("steps") or 0) for note in notes)
    seconds = next((note["whole_seconds"] for note in notes if note.get("whole_seconds")), None)
    if seconds is not None:
        first = (
            f"No training loop was detected in time: {seconds:.0f} s of the job were recorded into {folder}."
        )
    elif steps:
        first = f"The job made {steps} step{'s' * (steps != 1)}, but steps {plan.first} to {plan.last} were requested: its first steps were recorded into {folder}."
    else:
        first = f"No training loop was detected: the job was recorded as a whole into {folder}."
    hint = "To record steps, call stepscope.step() at the end of the loop's body."
    if steps:
        hint = f"For other steps: stepscope run --steps {_last_steps(steps)} -- {shlex.join(command)}"
    return "\n".join([first, hint, report_of(folder)])


def _recorded(plan: Plan, notes: Sequence[Note], folder: str) -> str:
    workers = "" if len(notes) == 1 else f" of {len(notes)} workers"
    last = min(plan.last, max(int(note.get("steps") or 0) for note in notes) - 1)
    early = "" if last == plan.last else f" (the job ended before step {plan.last})"
    which = f"step {plan.first}" if last <= plan.first else f"steps {plan.first} to {last}"
    if plan.repeat != 1 and last == plan.last:
        windows = max(int(note.get("steps") or 0) for note in notes) // plan.cycle
        which = f"{windows} window{'s' * (windows != 1)}, {which} and so on every {plan.cycle} steps,"
    lines = [f"Recorded {which}{workers}{early} into {folder}."]
    return "\n".join([*lines, *_problems(notes), report_of(folder)])


def _nothing(plan: Plan, notes: Sequence[Note], command: Sequence[str]) -> str:
    problems = _problems(notes)
    steps = max((int(note.get("steps") or 0) for note in notes), default=0)
    again = f"stepscope run --steps {{}} -- {shlex.join(command)}"
    if steps and not problems:
        return (
            f"Nothing was recorded: the job made {steps} step{'s' * (steps != 1)}, but steps {plan.first} to {plan.last} were requested.\n"
            f"Next: {again.format(_last_steps(steps))}"
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


def _last_steps(steps: int) -> str:
    """The last few of `steps` steps, as --steps takes them."""
    last = max(0, steps - 1)
    return f"{min(max(0, steps - 5), max(0, last - 1))}:{last}"


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
