"""All formats in their turn: `FORMAT` or `FORMATS` of every folder here, and those of plug-ins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from stepscope import formats
from stepscope.errors import StepscopeError, UnreadableFile
from stepscope.formats.reader import USUAL_TURN, Format, Progress
from stepscope.formats.source import Source
from stepscope.plugins import FORMATS, RAISE, load_plugins, wants_tracebacks, warn_of_fault

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft


@cache
def find_formats() -> tuple[Format, ...]:
    """All formats, in the order in which they are asked whether a file is theirs."""
    own = built_in_formats()
    offered = load_plugins(FORMATS, Format, lambda each: each.name, [each.name for each in own])
    return tuple(sorted((*own, *(_guard(plugin, each) for plugin, each in offered)), key=_turn))


@cache
def built_in_formats() -> tuple[Format, ...]:
    """Those of stepscope itself."""
    packages = [module.name for module in iter_modules(formats.__path__) if module.ispkg]
    modules = [import_module(f"{formats.__name__}.{name}") for name in packages]
    found = [each for module in modules for each in _offered(module)]
    return tuple(sorted(found, key=_turn))


def _offered(module: object) -> tuple[Format, ...]:
    """Folders that only help to read others have none."""
    alone = getattr(module, "FORMAT", None)
    return getattr(module, "FORMATS", ()) if alone is None else (alone,)


def _turn(each: Format) -> tuple[int, str]:
    return each.turn, each.name


def describe_supported() -> str:
    """The fix for a file that no reader wants."""
    return f"Supported: {', '.join(sorted(each.summary for each in find_formats() if each.summary))}."


def _guard(plugin: str, each: Format) -> Format:
    """The format of a plug-in: it is asked after the strict built-in ones, and its faults cost its own files only."""

    def is_inside(head: bytes) -> bool:
        return _asked(plugin, lambda: each.holds(head))

    def matches(head: bytes, name: str) -> bool:
        return _asked(plugin, lambda: each.matches(head, name))

    def read(source: Source, progress: Progress) -> Draft:
        try:
            return each.read(source, progress)
        except (StepscopeError, OSError, MemoryError):
            raise
        except Exception as error:
            if wants_tracebacks():
                raise
            raise UnreadableFile(
                f"{source.path} cannot be read: the plug-in {plugin} failed with {type(error).__name__}: {error}",
                fix=f"Update or uninstall the plug-in; {RAISE}=1 shows the traceback.",
            ) from None

    return replace(each, turn=USUAL_TURN, matches=matches, is_inside=is_inside, read=read)


def _asked(plugin: str, question: Callable[[], bool]) -> bool:
    try:
        return bool(question())
    except Exception as error:
        warn_of_fault(plugin, error)
        return False
