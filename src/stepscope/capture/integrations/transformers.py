"""Hugging Face Transformers: `Trainer(…, callbacks=[StepscopeCallback("logs/run1")])`."""

from __future__ import annotations

import os
from typing import Any

from stepscope.capture.integrations.common import base, profiler

_Callback: Any = base(
    ("transformers.trainer_callback", "transformers"),
    "TrainerCallback",
    "Transformers",
    "Install it: pip install transformers",
)


class StepscopeCallback(_Callback):  # type: ignore[misc]
    """Records some steps of `Trainer.train`: a step is one update, however many batches go into it. Options as for `Profiler`."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        super().__init__()
        self.profiler = profiler(folder, options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Training begins: so does the schedule."""
        self.profiler.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The model was updated."""
        self.profiler.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write what has not been written."""
        self.profiler.stop()
