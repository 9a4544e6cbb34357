"""How many labels of a loss over many classes are ignored: positions whose logits are computed for nothing.

A profile has shapes and no values: masked positions and prompts, whose label is `ignore_index`, look as all others do. While a
window is open, PyTorch's two functions behind `cross_entropy` and `nll_loss` are wrapped; the labels of large calls are kept,
and counted on the device once the window has closed. Inside of a step nothing is launched, and nothing that fails reaches the job.

The wrapped functions are those of `torch._C._nn`, which `torch.nn.functional` looks up in each call. So names that a job has
imported are heard of, too, and torch.compile, which keeps `torch.nn.functional.cross_entropy` itself in its graphs and guards,
compiles nothing again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from stepscope.capture.machine.ears import Ears, Function, is_transformed
from stepscope.capture.machine.kept import kept_bytes
from stepscope.capture.machine.matrices import SWITCH, has_room

_EARS = Ears([Function("torch._C._nn", name, name) for name in ("cross_entropy_loss", "nll_loss_nd")])
_IGNORE_AT, _IGNORED_BY_DEFAULT = 4, -100  # the place of `ignore_index` in both
_CLASSES_LEAST = 2_000
_ROWS_LEAST = 1_000
_MOST_CALLS = 64
_MOST_BYTES = 32 << 20  # of labels that are kept until the window closes


class _Call(NamedTuple):
    """The labels of a loss, as they are while `version` is theirs."""

    shape: tuple[int, ...]
    dtype: str
    target: Any
    version: int
    ignored: int


class Labels:
    """Of one window."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._bytes = 0
        self._torch: Any = None
        self._devices: tuple[str, ...] = ()
        self.kept: dict[int, int] = {}  # bytes on each GPU that would be free without us, once counted

    def start(self, frameworks: Iterable[str]) -> None:
        """Listen from now on, if PyTorch is one of them and the switch is not off."""
        wanted = os.environ.get(SWITCH, "1")
        torch = sys.modules.get("torch")
        if wanted == "0" or torch is None or "torch" not in frameworks:
            return
        self._torch = torch
        self._devices = ("cuda", "cpu") if wanted == "cpu" else ("cuda",)
        self.resume()

    def pause(self) -> None:
        """Listen no more, until resumed."""
        if self._torch is not None:
            _EARS.close(self._torch, self)

    def resume(self) -> None:
        """Listen again."""
        if self._torch is not None:
            _EARS.open(self._torch, self)

    def forget(self) -> None:
        """Nothing is to be counted."""
        self.pause()
        self._calls.clear()

    def note(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A loss is called with these; its labels are kept if there are many, and many classes."""
        try:
            logits, target = arguments[:2]
            self._keep(logits, target, _ignored_by(arguments, options))
        except Exception:  # a tensor that does not tell: the job's own call says what is wrong with it
            return

    def _keep(self, logits: Any, target: Any, ignored: int) -> None:
        torch = self._torch
        if type(logits) is not torch.Tensor or type(target) is not torch.Tensor:
            return  # also what a compiler traces with
        if len(logits.shape) < 2 or logits.shape[1] < _CLASSES_LEAST or target.numel() < _ROWS_LEAST:
            return
        if target.dtype is not torch.int64 or target.numel() * logits.shape[1] != logits.numel():
            return
        if target.device.type not in self._devices or len(self._calls) >= _MOST_CALLS:
            return
        if is_transformed(torch, target):
            return
        self._bytes += target.untyped_storage().nbytes()
        if self._bytes <= _MOST_BYTES:
            dtype = str(logits.dtype).removeprefix("torch.")
            self._calls.append(_Call(tuple(logits.shape), dtype, target, target._version, ignored))

    def count(self) -> list[dict[str, Any]]:
        """framework, shape and dtype (of the logits), calls, labels, ignored (share of the labels); empty where there are none."""
        self.pause()
        calls, self._calls = self._calls, []
        self.kept = kept_bytes(self._torch, [each.target for each in calls])
        try:
            return self._counted(calls) if calls else []
        except Exception:  # a device in error: the rest of the recording is worth having
            return []

    def _counted(self, calls: list[_Call]) -> list[dict[str, Any]]:
        torch = self._torch
        if torch._C._len_torch_dispatch_stack():
            return []
        uses_cuda = torch.cuda.is_initialized()
        if uses_cuda and (torch.cuda.is_current_stream_capturing() or not has_room(torch.cuda)):
            return []
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        with torch._C.DisableTorchFunction(), torch.no_grad():
            # What was written to since has other labels, perhaps of a batch to come.
            current = [each for each in calls if each.target._version == each.version]
            sums = [(each.target == each.ignored).sum() for each in current]
            for each, ignored in zip(current, sums, strict=True):
                row = found.setdefault((each.shape, each.dtype), _row(each))
                row["calls"] += 1
                row["labels"] += each.target.numel()
                row["ignored"] += int(ignored.item())
        return [row | {"ignored": row["ignored"] / row["labels"]} for row in found.values()]


def _row(call: _Call) -> dict[str, Any]:
    shape = [int(side) for side in call.shape]
    return {"framework": "torch", "shape": shape, "dtype": call.dtype, "calls": 0, "labels": 0, "ignored": 0}


def _ignored_by(arguments: tuple[Any, ...], options: dict[str, Any]) -> int:
    if len(arguments) > _IGNORE_AT:
        return int(arguments[_IGNORE_AT])
    return int(options.get("ignore_index", _IGNORED_BY_DEFAULT))
