"""What a window left: its trace, and the sidecar that is written again as more is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.capture.files.writer import replace_json


@dataclass
class Published:
    """A trace that was written, and its sidecar, which learns of later steps."""

    files: list[Path]
    note: dict[str, Any]

    @property
    def sidecar(self) -> Path:
        """It is written with the trace, and named last."""
        return self.files[-1]

    @property
    def trace(self) -> Path | None:
        """The trace; None where a failure left only the sidecar."""
        return self.files[0] if len(self.files) > 1 else None

    def update(self, **fields: Any) -> None:
        """Write the sidecar again, with these fields changed."""
        self.note |= fields
        replace_json(self.sidecar, self.note)
