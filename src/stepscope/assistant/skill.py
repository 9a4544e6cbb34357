"""Put SKILL.md where assistants look for skills."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from stepscope.errors import StepscopeError

# Folders of skills, in a project or in the home folder: the open one, and that of Claude Code.
PLACES = (".agents/skills", ".claude/skills")
NAME = "stepscope/SKILL.md"


def skill_text() -> str:
    """The skill as it ships."""
    return files("stepscope.assistant").joinpath("SKILL.md").read_text("utf-8")


def install_skill(root: Path) -> list[Path]:
    """Write it below the root, into every place; the files that were written. What is there of an older version is replaced."""
    written = []
    for place in PLACES:
        target = root / place / NAME
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(skill_text(), "utf-8")
        except OSError as error:
            raise StepscopeError(f"Cannot write {target}: {error.strerror or error}.") from None
        written.append(target)
    return written
