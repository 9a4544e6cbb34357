"""Keep a trial out of the user's files: checkpoints and event files go to a scratch folder, where the framework lets us."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stepscope.capture.process.on_import import after_import


class Scratch:
    """`redirected` counts the writes that went elsewhere."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self.redirected = 0

    def watch(self) -> None:
        """Redirect, once the frameworks are imported."""
        after_import("torch.serialization", self._watch_torch)
        after_import("torch.utils.tensorboard.writer", self._watch_writer)
        after_import("keras", self._watch_keras)

    def place(self, path: Any) -> str:
        """Where a file or folder of this name goes."""
        self.redirected += 1
        self._folder.mkdir(parents=True, exist_ok=True)
        return str(self._folder / Path(os.fspath(path)).name)

    def _watch_torch(self, serialization: Any) -> None:
        plain = serialization.save

        def save(obj: Any, f: Any, *args: Any, **options: Any) -> Any:
            return plain(obj, self.place(f) if isinstance(f, str | os.PathLike) else f, *args, **options)

        serialization.save = save
        after_import("torch", lambda module: setattr(module, "save", save))

    def _watch_writer(self, writer: Any) -> None:
        plain = writer.SummaryWriter.__init__

        def __init__(summary: Any, log_dir: Any = None, *args: Any, **options: Any) -> None:
            plain(summary, self.place(log_dir or "runs"), *args, **options)

        writer.SummaryWriter.__init__ = __init__

    def _watch_keras(self, keras: Any) -> None:
        for name in ("save", "save_weights"):
            self._redirect(keras.Model, name)
        plain = keras.callbacks.TensorBoard.__init__

        def __init__(callback: Any, log_dir: Any = "logs", *args: Any, **options: Any) -> None:
            plain(callback, self.place(log_dir), *args, **options)

        keras.callbacks.TensorBoard.__init__ = __init__

    def _redirect(self, kind: Any, name: str) -> None:
        plain = getattr(kind, name)

        def write(model: Any, filepath: Any, *args: Any, **options: Any) -> Any:
            return plain(model, self.place(filepath), *args, **options)

        setattr(kind, name, write)
