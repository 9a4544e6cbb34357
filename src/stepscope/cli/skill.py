"""`stepscope skill`: instructions for coding assistants."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption, VerboseOption


class Action(str, Enum):
    """What to do with the skill."""

    install = "install"
    show = "show"


def skill(
    action: Annotated[Action, typer.Argument(help="Write SKILL.md where assistants look, or print it.")],
    folder: Annotated[Path | None, typer.Option("--folder", metavar="FOLDER", help="Project to install it into; default: the current folder.")] = None,
    user: Annotated[bool, typer.Option("--user", help="Install for all projects of this user, in the home folder.")] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Teach coding assistants to use stepscope: install its SKILL.md into .agents/skills and .claude/skills."""
    with session(quiet, verbose, color) as talk:
        from stepscope.assistant.skill import install_skill, skill_text

        if action is Action.show:
            typer.echo(skill_text(), nl=False)
            return
        root = Path.home() if user else folder or Path.cwd()
        for path in install_skill(root):
            talk.note(f"Wrote {path}")
