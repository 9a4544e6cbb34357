"""Lightning: a callback that records some steps, or a profiler that also names everything that Lightning does."""

from __future__ import annotations

import os
import re
from typing import Any

from stepscope.capture.integrations.common import Spans, base, profiler
from stepscope.capture.loop.input import NAME as INPUT

_INSTALL = "Install it: pip install lightning"
_Callback: Any = base(
    ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks"), "Callback", "Lightning", _INSTALL
)
_Profiler: Any = base(
    ("lightning.pytorch.profilers", "pytorch_lightning.profilers"), "Profiler", "Lightning", _INSTALL
)
# What Lightning calls the fetching of a batch, its use, and an update.
_FETCH, _BATCH, _UPDATE = "train_dataloader_next", "run_training_batch", "optimizer_step"
# Called only where Lightning itself runs the optimizers.
_AUTOMATIC = re.compile(r"^\[Strategy\].*\.backward$")
# With these, the step before them is over.
_NEXT = re.compile(
    rf"({_FETCH}|{_BATCH}|on_train_epoch_end|on_validation_start|on_validation_model_eval|on_train_end)$"
)


class StepscopeCallback(_Callback):  # type: ignore[misc]
    """`Trainer(callbacks=[StepscopeCallback("logs/run1")])`: a step is one update of the model. Options as for `Profiler`."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        super().__init__()
        self.profiler = profiler(folder, options)
        self._spans = Spans()
        self._updates = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Training begins: so does the schedule."""
        self._updates = trainer.global_step
        self.profiler.start()

    def on_train_batch_end(self, trainer: Any, *_batch: Any, **_more: Any) -> None:
        """With accumulated gradients most batches update nothing, and are not steps."""
        if trainer.global_step != self._updates:
            self._updates = trainer.global_step
            self.profiler.step()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Validation in the middle of training gets a name."""
        self._spans.begin("validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """It is over."""
        self._spans.end("validation")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write what has not been written."""
        self.profiler.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Training failed: what was recorded up to here is all the more wanted."""
        self._spans.end_all()
        self.profiler.stop()


class StepscopeProfiler(_Profiler):  # type: ignore[misc]
    """`Trainer(profiler=StepscopeProfiler("logs/run1"))`: every action of Lightning is an annotation, fetching is input."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        super().__init__()
        self.profiler = profiler(folder, options)
        self._spans = Spans()
        self._is_automatic = False
        self._was_updated = False

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """Lightning begins to fit, validate, test or predict; only fitting has steps."""
        super().setup(stage, local_rank, log_dir)
        if stage == "fit":
            self.profiler.start()

    def start(self, action_name: str) -> None:
        """An action begins."""
        if self._was_updated and _NEXT.search(action_name):
            self._was_updated = False
            self.profiler.step()
        self._spans.begin(action_name, INPUT if action_name.endswith(_FETCH) else None)

    def stop(self, action_name: str) -> None:
        """An action is over. Where the user runs the optimizers, a batch counts as an update."""
        self._spans.end(action_name)
        if action_name.endswith(_UPDATE if self._is_automatic else (_UPDATE, _BATCH)):
            self._was_updated = True
        elif not self._is_automatic and _AUTOMATIC.search(action_name):
            self._is_automatic = True

    def summary(self) -> str:
        """The time of each action in the recorded steps."""
        return self.profiler.summary()

    def teardown(self, stage: str | None) -> None:
        """Lightning is done: write what has not been written. Also called while the object is being deleted."""
        if hasattr(self, "profiler"):
            self._spans.end_all()
            self.profiler.stop()
            super().teardown(stage)
