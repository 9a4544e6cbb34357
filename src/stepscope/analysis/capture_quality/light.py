"""What is wrong with the light window of a recording: the report then rests on the full one."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.replay.light import LightHost, NotJoined
from stepscope.trace.problems import Problem, problem


def light_problems(light: LightHost | NotJoined | None) -> Iterator[Problem]:
    """That it is not used, and why; nothing where none was recorded."""
    if isinstance(light, NotJoined):
        yield problem("light-window-unused", f"Not used: {light.reason}.")
