"""Act once a module has been imported, without importing it: a framework that the job does not use stays unused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Act = Callable[[Any], None]
_waiting: dict[str, list[Act]] = {}


def after_import(name: str, act: Act) -> None:
    """Call `act` with the module: at once if it is there, else when it has been imported. What `act` raises is dropped."""
    module = sys.modules.get(name)
    if module is not None:
        _safely(act, module)
        return
    if not any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watcher())
    _waiting.setdefault(name, []).append(act)


def _safely(act: Act, module: ModuleType) -> None:
    try:
        act(module)
    except Exception:  # a version that has other names: its steps are found by something else, or not
        pass


class _Watcher:
    """Finds what the other finders find; the loader of an awaited module reports when it is done."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        spec = self._found(name, path, target)
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, type):
            _act_when_done(spec.loader, name)
        return spec

    def _found(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                return spec  # type: ignore[no-any-return]
        return None


def _act_when_done(loader: Any, name: str) -> None:
    """Who only asks whether there is such a module gets a spec, too: the acts wait for the one that is executed."""
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        try:
            del loader.exec_module  # for this once
        except AttributeError:
            pass
        run(module)
        for act in _waiting.pop(name, ()):
            _safely(act, module)

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader that cannot be changed: go without
        pass
