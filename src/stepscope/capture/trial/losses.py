"""The losses of a job, kept without waiting for the device: the scalar on which backward() is called, or that Keras reports, or that a jitted function of JAX returns."""

from __future__ import annotations

import math
from typing import Any

from stepscope.capture.loop.sources import watch_results
from stepscope.capture.process.on_import import after_import
from stepscope.capture.trial.jax_losses import JaxLosses

_KEPT = 200


class Losses:
    """The first ones, as the framework has them; they become numbers when the run is over.

    A faster run has more of them: only those of the same steps can be compared.
    """

    def __init__(self) -> None:
        self._found: list[Any] = []
        self._of_jax = JaxLosses(_KEPT)

    def watch(self) -> None:
        """Listen to PyTorch and Keras, once they are imported, and to what jitted functions return."""
        watch_results(self._of_jax.hear)
        after_import("torch", self._watch_torch)
        after_import("keras", self._watch_keras)

    def values(self) -> list[float | None]:
        """In the order of the steps, None for one that is not finite; whatever is not a number is left out."""
        numbers: list[float | None] = []
        for loss in self._found or self._of_jax.values():
            try:
                number = float(loss)
            except Exception:  # deleted, freed with its device, or never a number
                continue
            numbers.append(number if math.isfinite(number) else None)
        return numbers

    def _keep(self, loss: Any) -> None:
        if len(self._found) < _KEPT:
            self._found.append(loss)

    def _watch_torch(self, torch: Any) -> None:
        plain = torch.Tensor.backward

        def backward(loss: Any, *args: Any, **options: Any) -> Any:
            if loss.numel() == 1:
                self._keep(loss.detach())
            return plain(loss, *args, **options)

        torch.Tensor.backward = backward

    def _watch_keras(self, keras: Any) -> None:
        plain = keras.callbacks.CallbackList.on_train_batch_end

        def on_train_batch_end(callbacks: Any, batch: Any, logs: Any = None) -> Any:
            if isinstance(logs, dict) and "loss" in logs:
                self._keep(logs["loss"])
            return plain(callbacks, batch, logs)

        keras.callbacks.CallbackList.on_train_batch_end = on_train_batch_end
