"""From a path to a profile: what is in a folder, its ranks, and the cache of what was read before.

The package can be called: `stepscope.profile("logs/run1")` records one.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """Importing a package puts it where its parent has a function of the same name; so it does what that would do."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        import stepscope

        return stepscope.Profiler(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
