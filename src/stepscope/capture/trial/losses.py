"""The losses of a job, kept without waiting for the device: the scalar on which backward() is called, or that Keras reports, or that a jitted function of JAX returns."""

from __future__ import annotations

from collections import deque
from typing import Any

from stepscope.capture.loop.sources import watch_results
from stepscope.capture.process.on_import import after_import
from stepscope.capture.trial.jax_losses import JaxLosses

_KEPT = 200


class Losses:
    """The last ones, as the framework has them; they become numbers when the run is over."""

    def __init__(self) -> None:
        self._found: deque[Any] = deque(maxlen=_KEPT)
        self._of_jax = JaxLosses(_KEPT)

    def watch(self) -> None:
        """Listen to PyTorch and Keras, once they are imported, and to what jitted functions return."""
        watch_results(self._of_jax.hear)
        after_import("torch", self._watch_torch)
        after_import("keras", self._watch_keras)

    def values(self) -> list[float]:
        """In the order of the steps; whatever is not a number is left out."""
        numbers = []
        for loss in self._found or self._of_jax.last():
            try:
                numbers.append(float(loss))
            except Exception:  # deleted, freed with its device, or never a number
                continue
        return numbers

    def _watch_torch(self, torch: Any) -> None:
        plain = torch.Tensor.backward

        def backward(loss: Any, *args: Any, **options: Any) -> Any:
            if loss.numel() == 1:
                self._found.append(loss.detach())
            return plain(loss, *args, **options)

        torch.Tensor.backward = backward

    def _watch_keras(self, keras: Any) -> None:
        plain = keras.callbacks.CallbackList.on_train_batch_end

        def on_train_batch_end(callbacks: Any, batch: Any, logs: Any = None) -> Any:
            if isinstance(logs, dict) and "loss" in logs:
                self._found.append(logs["loss"])
            return plain(callbacks, batch, logs)

        keras.callbacks.CallbackList.on_train_batch_end = on_train_batch_end
