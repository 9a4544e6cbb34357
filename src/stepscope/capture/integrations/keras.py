"""Keras: `model.fit(…, callbacks=[StepscopeCallback("logs/run1")])`, on TensorFlow, JAX or PyTorch."""

from __future__ import annotations

import os
from typing import Any

from stepscope.capture.integrations.common import Spans, base, profiler
from stepscope.capture.loop.input import NAME as INPUT

_Callback: Any = base(
    ("keras.callbacks", "tf_keras.callbacks"), "Callback", "Keras", "Install it: pip install keras"
)


class StepscopeCallback(_Callback):  # type: ignore[misc]
    """Records some batches of `fit`; `steps_per_execution` batches are one step. Options as for `Profiler`."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        super().__init__()
        self.profiler = profiler(folder, options)
        self._spans = Spans()

    def on_train_begin(self, logs: Any = None) -> None:
        """Training begins: so does the schedule."""
        self.profiler.start()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """The batch is there: JAX and PyTorch were waiting for it, TensorFlow asks for it inside its graph."""
        self._spans.end(INPUT)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A step is over."""
        self.profiler.step()
        if _backend() != "tensorflow":
            self._spans.begin(INPUT)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """No batch follows at once."""
        self._spans.end(INPUT)

    def on_test_begin(self, logs: Any = None) -> None:
        """Validation in the middle of training gets a name."""
        self._spans.end(INPUT)
        self._spans.begin("validation")

    def on_test_end(self, logs: Any = None) -> None:
        """It is over."""
        self._spans.end("validation")

    def on_train_end(self, logs: Any = None) -> None:
        """Write what has not been written."""
        self._spans.end_all()
        self.profiler.stop()


def _backend() -> str:
    import sys

    keras = sys.modules.get("keras")
    try:
        return str(keras.backend.backend()) if keras is not None else "tensorflow"
    except Exception:  # Keras 2 knew only TensorFlow in the end
        return "tensorflow"
