"""Changes to a TensorFlow or Keras job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepscope.capture.process.on_import import after_import


def use_prefetch(tf: Any) -> None:
    """Datasets map in parallel, and prefetch when they are iterated or trained on."""
    dataset, auto = tf.data.Dataset, tf.data.AUTOTUNE
    plain_map = dataset.map

    def map_(data: Any, function: Any, num_parallel_calls: Any = None, **options: Any) -> Any:
        return plain_map(data, function, num_parallel_calls=num_parallel_calls or auto, **options)

    def prefetched(data: Any) -> Any:
        return data.prefetch(auto) if isinstance(data, dataset) else data

    dataset.map = map_
    for kind in _kinds(dataset):
        if "__iter__" in vars(kind):
            _iterate(kind, prefetched)
    after_import("keras", lambda keras: _fit(keras.Model, prefetched))


def _iterate(kind: Any, prefetched: Callable[[Any], Any]) -> None:
    plain = kind.__iter__
    kind.__iter__ = lambda data: plain(prefetched(data))


def _fit(model: Any, prefetched: Callable[[Any], Any]) -> None:
    """Keras makes iterators of its own."""
    plain = model.fit

    def fit(self: Any, x: Any = None, *args: Any, **options: Any) -> Any:
        return plain(self, prefetched(x), *args, **options)

    model.fit = fit


def _kinds(base: Any) -> list[Any]:
    return [base, *(kind for sub in base.__subclasses__() for kind in _kinds(sub))]


def use_xla(tf: Any) -> None:
    """Functions are compiled with XLA, those of Keras included."""
    tf.config.optimizer.set_jit("autoclustering")
    after_import("keras", _compile_models)


def _compile_models(keras: Any) -> None:
    plain = keras.Model.compile

    def compile_(model: Any, *args: Any, **options: Any) -> Any:
        options["jit_compile"] = True
        return plain(model, *args, **options)

    keras.Model.compile = compile_


def use_mixed_float16(keras: Any) -> None:
    """Layers compute in float16 and keep float32 variables."""
    keras.mixed_precision.set_global_policy("mixed_float16")
