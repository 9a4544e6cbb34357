"""Frameworks that own the loop, through stepscope's callbacks: `integrations_job.py NAME FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import stepscope
from tests.capture.jobs.facts import facts, tell

STEPS = stepscope.schedule(skip=2, warmup=1, active=3)


def keras(folder: Path) -> dict[str, Any]:
    import keras as k

    from stepscope.capture.integrations.keras import StepscopeCallback

    model = k.Sequential([k.layers.Dense(16, activation="relu"), k.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = k.random.normal((64, 8)), k.random.normal((64, 1))
    callback = StepscopeCallback(folder, schedule=STEPS)
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=[callback], validation_data=(x, y))
    return {"keras": facts(callback.profiler), "is_callback": isinstance(callback, k.callbacks.Callback)}


def lightning(folder: Path) -> dict[str, Any]:
    import lightning as L
    import torch

    from stepscope.capture.integrations.lightning import StepscopeCallback, StepscopeProfiler

    class Model(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.layer(batch[0]).sum()

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.layer(batch[0])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 8)), batch_size=4)
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    quiet |= {"enable_model_summary": False, "accelerator": "cpu", "max_epochs": 1}
    callback = StepscopeCallback(folder / "callback", schedule=STEPS)
    L.Trainer(**quiet, callbacks=[callback], accumulate_grad_batches=2).fit(Model(), data, data)
    profiler = StepscopeProfiler(folder / "profiler", schedule=STEPS)
    L.Trainer(**quiet, profiler=profiler, accumulate_grad_batches=2).fit(Model(), data, data)
    return {"callback": facts(callback.profiler), "profiler": facts(profiler.profiler)}


def transformers(folder: Path) -> dict[str, Any]:
    import torch
    from transformers import Trainer, TrainingArguments

    from stepscope.capture.integrations.transformers import StepscopeCallback

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def forward(self, x: Any, labels: Any = None) -> Any:
            return {"loss": (self.layer(x) - labels).pow(2).mean()}

    rows = [{"x": torch.randn(8), "labels": torch.zeros(1)} for _ in range(80)]
    arguments = TrainingArguments(
        output_dir=str(folder / "out"), per_device_train_batch_size=4, gradient_accumulation_steps=2,
        max_steps=10, report_to=[], use_cpu=True, save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    callback = StepscopeCallback(folder / "profile", schedule=STEPS)
    Trainer(model=Model(), args=arguments, train_dataset=rows, callbacks=[callback]).train()
    return {"trainer": facts(callback.profiler)}


def session(folder: Path) -> dict[str, Any]:
    import tensorflow as tf

    from stepscope.capture.integrations.tf1_session import StepscopeHook

    v1 = tf.compat.v1
    hook = StepscopeHook(folder, schedule=STEPS)
    with tf.Graph().as_default():
        v1.train.get_or_create_global_step()
        w = v1.get_variable("w", (64, 64))
        update = w.assign_sub(0.001 * tf.matmul(w, w))
        with v1.train.MonitoredTrainingSession(hooks=[hook]) as running:
            for _ in range(10):
                running.run(update)
    return {"session": facts(hook.profiler)}


if __name__ == "__main__":
    tell(**globals()[sys.argv[1]](Path(sys.argv[2])))
