"""What a collector can do. Any of it may raise: the caller turns that into a problem."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stepscope.capture.files.writer import Recorded


@dataclass(frozen=True)
class Options:
    """What is to be recorded."""

    memory: bool = True
    shapes: bool = True
    stacks: bool = True
    flops: bool = True
    sync: bool = True
    device: bool = True
    packed: bool = False
    # Whether no other window follows soon: what slows the job while it is attached is let go.
    detach: bool = False


class Backend(Protocol):
    """One framework's collector over one window: warm_up, start, steps, stop, save."""

    name: str
    # Whether its files go to plugins/profile/<run>, one per host, as TensorBoard's profile plugin wants it.
    in_run_folder: bool

    def warm_up(self, folder: Path) -> None:
        """Get ready, so that the first recorded step does not pay for it."""

    def start(self, folder: Path) -> None:
        """Record from now on; whatever has to be written on the way goes into the folder."""

    def begin_step(self, number: int) -> None:
        """A step of this number begins; the one before it has ended."""

    def end_step(self) -> None:
        """The step that began last ends."""

    def pause(self) -> None:
        """Record nothing until resume."""

    def resume(self) -> None:
        """Record again."""

    def stop(self) -> None:
        """Stop recording, fast: the job waits."""

    def save(self) -> list[Recorded]:
        """Write the files; the trace first."""

    def abandon(self) -> None:
        """Let go of everything after a failure."""

    def devices(self) -> list[dict[str, Any]]:
        """What the job runs on."""

    def versions(self) -> dict[str, str]:
        """Of the framework and what belongs to it."""
