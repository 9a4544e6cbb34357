"""Plug-ins: formats, findings and renderers that other packages offer through entry points.

They are looked for when they are first needed, never by `import stepscope`. A broken one is a warning, once, never an error.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

RAISE = "STEPSCOPE_RAISE"  # in the environment: tracebacks instead of warnings
# Groups of entry points whose plug-ins have a say in what is computed.
FORMATS, FINDINGS = "stepscope.formats", "stepscope.findings"
_OURS = b"[stepscope."  # how each of our groups begins in a list of entry points
T = TypeVar("T")
_warned: set[str] = set()


class PluginWarning(UserWarning):
    """Something is wrong with a plug-in; stepscope goes on without it."""


def load_plugins(
    group: str, kind: type[T], name_of: Callable[[T], str], taken: Collection[str]
) -> list[tuple[str, T]]:
    """The values of all entry points of the group, each with the name of its plug-in; names in `taken` are refused."""
    found: list[tuple[str, T]] = []
    names = set(taken)
    for plugin, value in _load_entry_points(group):
        for each in value if isinstance(value, list | tuple) else (value,):
            if not isinstance(each, kind):
                warn(plugin, f"it offers a {type(each).__name__}, not a {kind.__name__}")
            elif name_of(each) in names:
                warn(plugin, f"the name {name_of(each)} is already taken")
            else:
                names.add(name_of(each))
                found.append((plugin, each))
    return found


@cache
def _find_entry_points(group: str) -> Collection[EntryPoint]:
    return _every_entry_point().select(group=group) if _may_be_any() else ()


@cache
def _every_entry_point() -> Any:  # before Python 3.12 of another type
    """Looked for once: each look reads a file of every package that is installed."""
    from importlib.metadata import entry_points

    return entry_points()


@cache
def _may_be_any() -> bool:
    """Whether a package may offer a plug-in. Mostly none does, and to import what reads all that they offer takes longer than this."""
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    return any(hasattr(finder, "find_distributions") for finder in finders) or any(map(_may_hold, sys.path))


def _may_hold(folder: str) -> bool:
    """Whether one of the packages in the folder names a group of ours; where packages are found in other ways, it may be."""
    try:
        names = os.listdir(folder or ".")  # noqa: PTH208 as a word of sys.path, it may be no path
    except NotADirectoryError:
        return True  # packed
    except OSError:
        return False
    return any(
        name.endswith(".egg") or (name.endswith((".dist-info", ".egg-info")) and _offers(folder, name))
        for name in names
    )


def _offers(folder: str, name: str) -> bool:
    try:
        return _OURS in Path(folder, name, "entry_points.txt").read_bytes()
    except OSError:
        return False


@cache
def have_a_say() -> bool:
    """Whether plug-ins have a say in what is computed of a profile: an answer without them is another one."""
    return any(_find_entry_points(group) for group in (FORMATS, FINDINGS))


@cache
def _load_entry_points(group: str) -> tuple[tuple[str, object], ...]:
    loaded = []
    for entry in sorted(_find_entry_points(group), key=lambda entry: (entry.name, entry.value)):
        package = entry.dist.name if entry.dist is not None else entry.value
        plugin = f"{entry.name} ({package}, {group})"
        try:
            loaded.append((plugin, entry.load()))
        except Exception as error:
            warn_of_fault(plugin, error)
    return tuple(loaded)


def warn_of_fault(plugin: str, error: BaseException) -> None:
    """Warn that the plug-in raised this error; with STEPSCOPE_RAISE, raise it."""
    if wants_tracebacks():
        raise error
    warn(plugin, f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0])


def wants_tracebacks() -> bool:
    """Whether the user asked for the errors of plug-ins as they are."""
    return bool(os.environ.get(RAISE))


def warn(plugin: str, what: str) -> None:
    """Warn once of each fault."""
    text = (
        f"The plug-in {plugin} does not work: {what}. Update or uninstall it; {RAISE}=1 shows the traceback."
    )
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, PluginWarning, stacklevel=2)
