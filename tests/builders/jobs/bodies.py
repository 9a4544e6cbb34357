"""The same code in a function that a step calls, in the step itself, below `main`, or in an annotation of the user's there."""

from __future__ import annotations

import re

BODIES = ("function", "step", "annotation")
_FUNCTION = re.compile(r"\w+\.py\(\d+\): \w+")


def body(kind: str, step: str, function: str) -> list[str]:
    """The rows of a table that hold the code: `step` is that of a step, `function` that of a function inside."""
    if kind == "function":
        return [step, function]
    begin, length = re.findall(r"\b\d+\b", step)[:2]
    main = re.sub(r"ProfilerStep#\d+", "train.py(3): main", step).replace("annotation", "python")
    main = main.replace(f"{begin}", "0", 1).replace(length, str(int(begin) + int(length) + 1), 1)
    annotation = _FUNCTION.sub("forward", function).replace("python", "annotation")
    return [main, step, *([annotation] if kind == "annotation" else [])]


def in_body(kind: str, lines: list[str]) -> list[str]:
    """The rows of several steps, of which each calls one function that holds all of it, in one of these forms."""
    if kind == "function":
        return lines
    main = "main  0  1000000  train.py(3): main  python  -"
    if kind == "step":
        return [main, *(line for line in lines if not _FUNCTION.search(line))]
    annotated = [
        _FUNCTION.sub("forward", line).replace("python", "annotation") if _FUNCTION.search(line) else line
        for line in lines
    ]
    return [main, *annotated]
