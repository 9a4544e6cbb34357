"""Messages of the commands that record: the printer that they need, and plain text where nothing else is installed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Protocol

from stepscope.safe import safe_lines


class Talk(Protocol):
    """Prints for a command."""

    def result(self, text: str) -> None:
        """Print a line that was asked for."""

    def note(self, text: str) -> None:
        """Print what may be left out with -q."""

    def warn(self, text: str) -> None:
        """Print a warning, even with -q."""

    def fail(self, text: str, fix: str | None = None) -> None:
        """Print why there is no result, and the fix."""


@dataclass
class PlainTalk:
    """Results to stdout, all else to stderr, without colours."""

    quiet: bool = False

    def result(self, text: str) -> None:
        sys.stdout.write(f"{safe_lines(text)}\n")

    def note(self, text: str) -> None:
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        sys.stderr.write(f"{safe_lines(text)}\n")

    def fail(self, text: str, fix: str | None = None) -> None:
        self.warn("\n".join(filter(None, (f"error: {text}", fix))))
