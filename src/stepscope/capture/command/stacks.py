"""`stepscope capture --stacks`: where each process is, equal stacks together, and the odd ones first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from stepscope.capture.command.talk import Talk
from stepscope.capture.remote import ask
from stepscope.capture.remote.ask_stacks import ProcessStacks, ThreadStack, ask_all

ALL = "all"
Frame = tuple[str, str, int]
_INSTALLED = re.compile(
    r"[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python3\.\d+[/\\]|^<|[/\\]torch[/\\]|[/\\]stepscope[/\\]capture[/\\]"
)
# Decorators of libraries: what was called is the function that they wrap.
_WRAPPERS = re.compile(
    r"(^|\.)(_?wrapper|_?wrapped\w*|inner|decorate_\w+|_fn|__call__|_call_impl|_wrapped_call_impl)$"
)
_WAITS = re.compile(
    r"(^|\.)(all_reduce|all_gather\w*|all_to_all\w*|broadcast\w*|barrier|monitored_barrier|gather\w*|reduce|reduce_scatter\w*|scatter\w*"
    r"|send|recv|wait|synchronize|join|acquire|result|_get_data|_try_get_data)$"
)
_LOADER = re.compile(r"[/\\]torch[/\\]utils[/\\]data[/\\]dataloader\.py$")
_NUMBERED = re.compile(r"[-_ ]?(0x[0-9a-f]+|\d+)")


def show_stacks(targets: Sequence[str], talk: Talk) -> bool:
    """Print them; False where there is none."""
    paths = _find_processes(targets)
    if not paths:
        talk.warn(
            "No process is listening. Start the job with STEPSCOPE_LISTEN=1, or call stepscope.listen() in it."
        )
        return False
    found = ask_all(paths)
    for each in found:
        if each.why:
            talk.warn(f"{name_processes([each])}: {each.why}.")
    answered = [each for each in found if not each.why]
    for line in write_stacks(answered):
        talk.result(line)
    return bool(answered)


def _find_processes(targets: Sequence[str]) -> list[Path]:
    if ALL in targets:
        return ask.listening()
    return [ask.address_of(target) for target in targets]


def write_stacks(found: Sequence[ProcessStacks]) -> Iterator[str]:
    """One sentence, then every stack once."""
    groups = group_main(found)
    if groups:
        yield f"{'; '.join(_raise_first([describe_group(processes, thread) for processes, thread in groups]))}."
    for processes, thread in groups:
        yield ""
        yield f"{name_processes(processes)}, {thread.name}{_note(processes)}"
        yield from write_frames(thread.frames)
    for name, owners, frames in group_others(found):
        yield ""
        yield f"{name_processes(owners)}, {name}"
        yield from write_frames(frames)


def group_main(found: Sequence[ProcessStacks]) -> list[tuple[list[ProcessStacks], ThreadStack]]:
    """The processes whose main threads have equal stacks; most of them last, since the odd ones matter."""
    groups: dict[tuple[Frame, ...], tuple[list[ProcessStacks], ThreadStack]] = {}
    for each in found:
        main = next((thread for thread in each.threads if thread.is_main), None)
        if main is not None:
            groups.setdefault(_key(main.frames), ([], main))[0].append(each)
    return sorted(groups.values(), key=lambda group: -len(group[0]))


def group_others(
    found: Sequence[ProcessStacks],
) -> list[tuple[str, list[ProcessStacks], tuple[Frame, ...]]]:
    """Other threads with equal stacks, over all processes."""
    groups: dict[tuple[str, tuple[Frame, ...]], list[ProcessStacks]] = {}
    names: dict[tuple[str, tuple[Frame, ...]], tuple[str, tuple[Frame, ...]]] = {}
    for each in found:
        for thread in each.threads:
            if thread.is_main or not thread.frames:
                continue
            key = _NUMBERED.sub("", thread.name), _key(thread.frames)
            owners = groups.setdefault(key, [])
            names.setdefault(key, (thread.name, thread.frames))
            if each not in owners:
                owners.append(each)
    return [(names[key][0], owners, names[key][1]) for key, owners in groups.items()]


def _key(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """By bare names: one way of asking knows the classes of functions, the other does not."""
    return tuple((name.rpartition(".")[2], file, line) for name, file, line in frames)


def describe_group(processes: Sequence[ProcessStacks], thread: ThreadStack) -> str:
    """`ranks 0–1, 3 wait in all_reduce at train.py:88`."""
    called, own = find_place(thread.frames)
    one = len(processes) == 1
    is_own = own is not None and called == own[0]
    waits = not is_own and _WAITS.search(called) is not None
    verb = ("waits" if one else "wait") if waits else ("is" if one else "are")
    at = f" at {_base(own[1])}:{own[2]}" if own is not None else ""
    return f"{name_processes(processes)} {verb} in {called}{at}"


def find_place(frames: Sequence[Frame]) -> tuple[str, Frame | None]:
    """What the user's code called, and where: the outermost function of libraries above its innermost line."""
    own = next((place for place, frame in enumerate(frames) if not _INSTALLED.search(frame[1])), None)
    if own is None:
        return (frames[0][0], frames[0]) if frames else ("no Python function", None)
    above = [frame for frame in frames[:own] if not _WRAPPERS.search(frame[0])]
    called = _name_function(above[-1]) if above else frames[own][0]
    return called, frames[own]


def _name_function(frame: Frame) -> str:
    name = frame[0].rpartition(".")[2]
    return f"DataLoader.{name}" if _LOADER.search(frame[1]) and name == "__next__" else frame[0]


def name_processes(processes: Sequence[ProcessStacks]) -> str:
    """By ranks where all have one, else by the numbers of the processes."""
    ranks = sorted(each.rank for each in processes if each.rank is not None)
    if len(ranks) == len(processes):
        return f"rank{'s' if len(ranks) > 1 else ''} {_spans(ranks)}"
    return f"process{'es' if len(processes) > 1 else ''} {', '.join(each.pid for each in processes)}"


def _spans(numbers: Sequence[int]) -> str:
    pieces: list[list[int]] = []
    for number in numbers:
        if pieces and number - pieces[-1][-1] <= 1:
            pieces[-1][1:] = [number]
        else:
            pieces.append([number])
    return ", ".join("–".join(map(str, dict.fromkeys(piece))) for piece in pieces)


def _note(processes: Sequence[ProcessStacks]) -> str:
    """A process that did not answer holds Python's lock."""
    silent = [each for each in processes if each.how == "signal"]
    return " (inside C: it did not answer, its signal did)" if len(silent) == len(processes) else ""


def write_frames(frames: Sequence[Frame]) -> Iterator[str]:
    """A line for each, the innermost first."""
    yield from (f"  {name} ({file}:{line})" for name, file, line in frames)


def _base(file: str) -> str:
    return file.replace("\\", "/").rsplit("/", 1)[-1]


def _raise_first(words: list[str]) -> list[str]:
    return [words[0][:1].upper() + words[0][1:], *words[1:]]
