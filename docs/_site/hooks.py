"""Hooks of MkDocs: the guides of the repository's root become pages, and links to files that are none become plain code.

The Markdown is written for a forge, where `../CONTRIBUTING.md` and `../src/…` exist; a site has only what is below docs/.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ("CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md")
FOLDER = "project"
_LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>(?!https?:|#|mailto:)[^)\s#]+)(?P<anchor>#[^)\s]*)?\)"
)


def on_files(files: Files, config: Any) -> Files:
    """Add the guides, as pages of a folder of their own."""
    for guide in GUIDES:
        if (ROOT / guide).exists():
            text = (ROOT / guide).read_text("utf-8")
            files.append(File.generated(config, f"{FOLDER}/{guide}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Lead links to where the site has what they name."""
    here = page.file.src_uri
    # Where the page is in the repository: links are relative to that.
    place = here.removeprefix(f"{FOLDER}/") if here.startswith(f"{FOLDER}/") else f"docs/{here}"
    lines, fenced = [], False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        lines.append(line if fenced else _LINK.sub(lambda link: _led(link, place, here, files), line))
    return "\n".join(lines)


def _led(link: re.Match[str], place: str, here: str, files: Files) -> str:
    named = posixpath.normpath(posixpath.join(posixpath.dirname(place), link["target"]))
    target = named.removeprefix("docs/") if named.startswith("docs/") else f"{FOLDER}/{named}"
    if files.get_file_from_path(target) is None:
        return link["text"] if link["text"].startswith("`") else f"{link['text']} (`{named}`)"
    return (
        f"[{link['text']}]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{link['anchor'] or ''})"
    )
