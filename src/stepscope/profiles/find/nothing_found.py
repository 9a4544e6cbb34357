"""The error for a path without a profile: what was examined, what is supported, and where a profile may be."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from stepscope.errors import NothingFound
from stepscope.formats.registry import describe_supported
from stepscope.profiles.find.catalog import Catalog
from stepscope.profiles.find.file_names import natural
from stepscope.profiles.find.paths import locate
from stepscope.profiles.find.skipped import by_name
from stepscope.profiles.find.walk import Skipped
from stepscope.units import count

REASONS_SHOWN = 6
NAMES_SHOWN = 3
NEIGHBOURS_TRIED = 50


def nothing_found(catalog: Catalog) -> NothingFound:
    """The error for a path under which no file is a profile."""
    seen = f"{_plural(catalog.looked_at, 'file')} in {_plural(catalog.folders, 'folder')}"
    if catalog.looked_at == 0 and catalog.folders == 0:
        return NothingFound(
            f"No file matches {catalog.path}", fix="Quote the pattern; ** matches any folders."
        )
    lines = [f"No profile found in {catalog.path} ({seen} examined)."]
    lines += reasons(catalog.skipped)
    near = nearby(catalog.path)
    supported = describe_supported()
    fix = supported if not near else f"{supported}\nA profile was found in {near}"
    return NothingFound("\n".join(lines), fix=fix)


def reasons(skipped: list[Skipped]) -> list[str]:
    """A few names for each reason, the most frequent reason first."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for item in skipped:
        by_reason[item.reason].append(item.path.rsplit("/", 1)[-1])
    ordered = sorted(by_reason.items(), key=lambda pair: len(pair[1]), reverse=True)
    lines = [f"  {_sample(names)}: {reason}" for reason, names in ordered[:REASONS_SHOWN]]
    if len(ordered) > REASONS_SHOWN:
        lines.append(f"  and {_plural(len(ordered) - REASONS_SHOWN, 'other reason')}")
    return lines


def _sample(names: list[str]) -> str:
    shown = ", ".join(sorted(names, key=natural)[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {count(more)} more" if more > 0 else shown


def _plural(number: int, noun: str) -> str:
    return f"{count(number)} {noun}" + ("" if number == 1 else "s")


def nearby(path: str) -> str | None:
    """A folder next to or above the path that holds a profile. Only a few names are examined."""
    if locate(path).filesystem is not None:
        return None
    here = Path(path).absolute()
    try:
        siblings = sorted(inside for inside in here.parent.iterdir() if inside.is_dir() and inside != here)
    except OSError:
        siblings = []
    candidates = [here.parent, *siblings[:NEIGHBOURS_TRIED], here.parent.parent]
    return next((str(folder) for folder in candidates if _holds_profile(folder)), None)


def _holds_profile(folder: Path) -> bool:
    try:
        if (folder / "plugins" / "profile").is_dir():
            return any((folder / "plugins" / "profile").iterdir())
        return any(by_name(inside.name).format_hint for inside in folder.iterdir() if inside.is_file())
    except OSError:
        return False
