"""How the frameworks tell a Loop what they do: small wrappers around the places that every training loop passes.

A wrapper calls what it wraps with the same arguments, returns the same and lets the same errors through; what a Loop itself
raises never leaves it. Inside torch.compile a wrapper is not there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from stepscope.capture.imports import after_import
from stepscope.capture.loop import Loop

_inside = threading.local()
_KERAS_LISTS = (
    "keras.src.callbacks.callback_list",
    "keras.src.callbacks",
    "keras.callbacks",
    "tf_keras.src.callbacks",
)


def watch(loop: Callable[[], Loop | None]) -> None:
    """Listen in every framework that is imported, now or later. `loop` gives the Loop of the process, or None."""
    after_import("torch.optim.optimizer", lambda module: _watch_optimizers(module, loop))
    after_import("torch.utils.data.dataloader", lambda module: _watch_loaders(module, loop))
    after_import("tensorflow.python.data.ops.iterator_ops", lambda module: _watch_datasets(module, loop))
    after_import("jax._src.profiler", lambda module: _watch_markers(module, loop))
    for name in _KERAS_LISTS:
        after_import(name, lambda module: _watch_batches(module, loop))


def _tell(act: Callable[[], object]) -> None:
    """Whatever a Loop does: not again inside of itself, and never an error for the job."""
    if getattr(_inside, "is_telling", False):
        return
    _inside.is_telling = True
    try:
        act()
    except Exception:
        pass
    finally:
        _inside.is_telling = False


def _watch_optimizers(module: Any, loop: Callable[[], Loop | None]) -> None:
    """Each class of optimizers is wrapped when its first object is made: outside of the span that torch gives its step."""
    patch = module.Optimizer._patch_step_function

    def _patch_step_function(self: Any) -> None:
        patch(self)
        _tell(lambda: _wrap_step(type(self), loop))
        told = loop()
        if told is not None:
            _tell(lambda: told.optimizer_made(id(self)))

    module.Optimizer._patch_step_function = _patch_step_function


def _wrap_step(optimizer: type[Any], loop: Callable[[], Loop | None]) -> None:
    step = optimizer.step
    if getattr(step, "tells_stepscope", False):
        return
    compiler = getattr(sys.modules["torch"], "compiler", None)
    is_compiling = getattr(compiler, "is_dynamo_compiling", bool)

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        if is_compiling():
            return step(self, *arguments, **options)
        told = None if getattr(_inside, "is_updating", False) else loop()
        if told is None:  # or an optimizer inside another
            return step(self, *arguments, **options)
        _inside.is_updating = True
        _tell(lambda: told.updating(id(self)))
        try:
            result = step(self, *arguments, **options)
        finally:
            _inside.is_updating = False
        _tell(lambda: told.updated(id(self)))
        return result

    counted.__name__, counted.__doc__ = step.__name__, step.__doc__
    # Without __wrapped__: torch would take the wrapper off again where it compiles.
    counted.hooked = True  # type: ignore[attr-defined]
    counted.tells_stepscope = True  # type: ignore[attr-defined]
    optimizer.step = counted


def _watch_loaders(module: Any, loop: Callable[[], Loop | None]) -> None:
    _wrap_next(module._BaseDataLoaderIter, loop)


def _watch_datasets(module: Any, loop: Callable[[], Loop | None]) -> None:
    _wrap_next(module.OwnedIterator, loop)


def _wrap_next(iterator: type[Any], loop: Callable[[], Loop | None]) -> None:
    following = iterator.__next__

    def __next__(self: Any) -> Any:
        told = loop()
        if told is not None:
            _tell(told.fetching)
        return following(self)

    iterator.__next__ = __next__


def _watch_batches(module: Any, loop: Callable[[], Loop | None]) -> None:
    """Keras: its list of callbacks hears of every batch, also where the user gave no callback."""
    callbacks = module.CallbackList
    begin, end = callbacks.on_train_batch_begin, callbacks.on_train_batch_end
    if getattr(end, "tells_stepscope", False):
        return

    def on_train_batch_begin(self: Any, *arguments: Any, **options: Any) -> Any:
        told = loop()
        if told is not None:
            _tell(told.marker_begins)
        return begin(self, *arguments, **options)

    def on_train_batch_end(self: Any, *arguments: Any, **options: Any) -> Any:
        result = end(self, *arguments, **options)
        told = loop()
        if told is not None:
            _tell(told.marker_ends)
        return result

    on_train_batch_end.tells_stepscope = True  # type: ignore[attr-defined]
    callbacks.on_train_batch_begin, callbacks.on_train_batch_end = on_train_batch_begin, on_train_batch_end


def _watch_markers(module: Any, loop: Callable[[], Loop | None]) -> None:
    """JAX: the markers of the loop; those of stepscope's own collector are made while the Loop is telling."""
    marker = module.StepTraceAnnotation
    enter, leave = marker.__enter__, marker.__exit__

    def __enter__(self: Any) -> Any:
        told = loop()
        if told is not None:
            _tell(told.marker_begins)
        return enter(self)

    def __exit__(self: Any, *error: Any) -> Any:
        result = leave(self, *error)
        told = loop()
        if told is not None:
            _tell(told.marker_ends)
        return result

    marker.__enter__, marker.__exit__ = __enter__, __exit__
