"""The Report object, whose JSON schema is the contract, and its renderers.

The package can be called: `stepscope.report(path)` is the report of a profile.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """Importing a package puts it where its parent has a function of the same name; so it does what that would do."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from stepscope.report.build import report

        return report(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
