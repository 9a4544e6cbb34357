"""How a Loop learns what the frameworks do: small wrappers around the places that every training loop passes.

A wrapper calls what it wraps with the same arguments, returns the same and lets the same errors through; what a Loop itself
raises never leaves it. Inside torch.compile a wrapper is not there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from stepscope.capture.loop.loop import Loop
from stepscope.capture.process.framework_use import tell_in_use
from stepscope.capture.process.on_import import after_import

_inside = threading.local()
_PMAP = "jax._src.pmap"  # where the functions that pmap returns come from
_KERAS_LISTS = (
    "keras.src.callbacks.callback_list",
    "keras.src.callbacks",
    "keras.callbacks",
    "tf_keras.src.callbacks",
)


Hearer = Callable[[], Loop | None]
_hearers: list[Hearer] = []
Returned = Callable[[Any, Any], None]
_returned: list[Returned] = []


def watch_results(hear: Returned) -> None:
    """Call `hear` with a jitted function of JAX and what it returned, after each call that its cache answers; needs `watch`."""
    _returned.append(hear)


def watch(loop: Hearer) -> None:
    """Listen in every framework that is imported, now or later. `loop` gives the Loop that wants to hear of it now, or None."""
    _hearers.append(loop)
    if len(_hearers) > 1:
        return
    after_import("torch.optim.optimizer", _watch_optimizers)
    after_import("torch.utils.data.dataloader", lambda module: _wrap_next(module._BaseDataLoaderIter))
    after_import("tensorflow.python.data.ops.iterator_ops", lambda module: _wrap_next(module.OwnedIterator))
    after_import("jax._src.profiler", _watch_markers)
    after_import("jax._src.api", _watch_jit)
    after_import("tensorflow.python.client.session", _watch_sessions)
    after_import("tensorflow.python.eager.polymorphic_function.polymorphic_function", _watch_functions)
    for name in _KERAS_LISTS:
        after_import(name, _watch_batches)


def _heard() -> list[Loop]:
    return [loop for hearer in _hearers if (loop := hearer()) is not None]


def _tell(act: Callable[[Loop], object]) -> None:
    """Whatever a Loop does: not again inside of itself, and never an error for the job."""
    if getattr(_inside, "is_telling", False):
        return
    _inside.is_telling = True
    try:
        for loop in _heard():
            act(loop)
    except Exception:
        pass
    finally:
        _inside.is_telling = False


def _watch_optimizers(module: Any) -> None:
    """Each class of optimizers is wrapped when its first object is made: outside of the span that torch gives its step."""
    patch = module.Optimizer._patch_step_function

    def _patch_step_function(self: Any) -> None:
        patch(self)
        try:
            _wrap_step(type(self))
        except Exception:  # a class that cannot be changed: its updates are not heard
            pass
        _tell(lambda loop: loop.optimizer_made(id(self)))

    module.Optimizer._patch_step_function = _patch_step_function
    for kind in _kinds(module.Optimizer):  # those that are in use already
        if getattr(vars(kind).get("step"), "hooked", False):
            _wrap_step(kind)


def _kinds(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


def _wrap_step(optimizer: type[Any]) -> None:
    step = optimizer.step
    if getattr(step, "tells_stepscope", False):
        return
    compiler = getattr(sys.modules["torch"], "compiler", None)
    is_compiling = getattr(compiler, "is_dynamo_compiling", bool)

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        if is_compiling():
            return step(self, *arguments, **options)
        if getattr(_inside, "is_updating", False):  # an optimizer inside another
            return step(self, *arguments, **options)
        _inside.is_updating = True
        _tell(lambda loop: loop.updating(id(self)))
        try:
            result = step(self, *arguments, **options)
        finally:
            _inside.is_updating = False
        _tell(lambda loop: loop.updated(id(self)))
        return result

    counted.__name__, counted.__doc__ = step.__name__, step.__doc__
    # Without __wrapped__: torch would take the wrapper off again where it compiles.
    counted.hooked = True  # type: ignore[attr-defined]
    counted.tells_stepscope = True  # type: ignore[attr-defined]
    optimizer.step = counted


def _wrap_next(iterator: type[Any]) -> None:
    following = iterator.__next__

    def __next__(self: Any) -> Any:
        _tell(Loop.fetching)
        return following(self)

    iterator.__next__ = __next__


def _watch_batches(module: Any) -> None:
    """Keras: its list of callbacks hears of every batch, also where the user gave no callback."""
    callbacks = module.CallbackList
    begin, end = callbacks.on_train_batch_begin, callbacks.on_train_batch_end
    if getattr(end, "tells_stepscope", False):
        return

    def on_train_batch_begin(self: Any, *arguments: Any, **options: Any) -> Any:
        _tell(Loop.marker_begins)
        return begin(self, *arguments, **options)

    def on_train_batch_end(self: Any, *arguments: Any, **options: Any) -> Any:
        result = end(self, *arguments, **options)
        _tell(Loop.marker_ends)
        return result

    on_train_batch_end.tells_stepscope = True  # type: ignore[attr-defined]
    callbacks.on_train_batch_begin, callbacks.on_train_batch_end = on_train_batch_begin, on_train_batch_end


def _dispatched(call: Callable[..., Any], program: Callable[..., object]) -> Callable[..., Any]:
    """The call, of which a Loop hears unless it is made inside another one."""

    def dispatched(self: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(_inside, "is_dispatching", False):
            return call(self, *arguments, **options)
        _inside.is_dispatching = True
        try:
            _tell(lambda loop: loop.dispatching(program(self, *arguments, **options)))
            return call(self, *arguments, **options)
        finally:
            _inside.is_dispatching = False

    dispatched.__name__, dispatched.__doc__ = call.__name__, call.__doc__
    return dispatched


def _watch_sessions(module: Any) -> None:
    """TensorFlow 1: a session that runs the same fetches again and again is a loop."""

    def fetches(_session: Any, wanted: Any, *_arguments: Any, **_options: Any) -> object:
        tell_in_use("tensorflow")
        return str(wanted)

    module.BaseSession.run = _dispatched(module.BaseSession.run, fetches)


def _watch_functions(module: Any) -> None:
    """TensorFlow 2: so is a tf.function that is called again and again; calls while another one is traced are not."""
    module.Function.__call__ = _dispatched(module.Function.__call__, lambda function, *_a, **_o: id(function))


def _watch_jit(module: Any) -> None:
    """JAX: so is a jitted function.

    Its calls stay in C++, which calls one hook after each that it answers from its cache: never while it traces or compiles. The
    hook is there for the search of NaNs; where the job wants that, the hook is the job's.
    """
    hook = getattr(module, "_post_hook_state", None)
    if hook is not None:
        if hook.get_global() is None:
            hook.set_global(_jit_called)
        return
    state = module.jax_jit.global_state()  # older versions
    if state.post_hook is None:
        state.post_hook = _jit_called


def _jit_called(function: Any, *call: Any) -> None:
    module = getattr(function, "__module__", None)
    if isinstance(module, str) and module.startswith("jax.") and module != _PMAP:
        return  # an operation outside of jit, which is a program of its own
    for hear in _returned if call else ():
        try:
            hear(function, call[-1])
        except Exception:  # never an error for the job
            pass
    _tell(lambda loop: loop.dispatching(id(function)))


def _watch_markers(module: Any) -> None:
    """JAX: the markers of the loop; those of stepscope's own collector are made while a Loop is informed."""
    marker = module.StepTraceAnnotation
    enter, leave = marker.__enter__, marker.__exit__

    def __enter__(self: Any) -> Any:
        _tell(Loop.marker_begins)
        return enter(self)

    def __exit__(self: Any, *error: Any) -> Any:
        result = leave(self, *error)
        _tell(Loop.marker_ends)
        return result

    marker.__enter__, marker.__exit__ = __enter__, __exit__
