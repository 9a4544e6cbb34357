"""How long the samples of padded batches are: token ids that end in one value, masks of attention, the lengths that a CTC loss is given.

A profile has shapes and no values: a batch that is mostly padding looks as a full one does. While a window is open, three functions
of PyTorch are wrapped; a few of the ids, masks and lengths that they are given are kept, and looked at once the window has closed.
Of JAX, those that compiled functions were given are looked at, or else the ids that are still on a device then. Inside
of a step nothing is launched, and nothing that fails reaches the job. Only how long samples are is written, never what they say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from stepscope.capture.machine.ears import Ears, Function, is_transformed
from stepscope.capture.machine.given import GivenArrays
from stepscope.capture.machine.kept import kept_by_jax, kept_bytes
from stepscope.capture.machine.matrices import SWITCH, devices_of, has_room

_EMBEDDING, _ATTENTION, _CTC = "embedding", "scaled_dot_product_attention", "ctc_loss"
_EARS = Ears(
    [
        Function("torch", _EMBEDDING, _EMBEDDING),
        Function("torch.nn.functional", _ATTENTION, _ATTENTION, is_guarded=True),
        Function("torch", _CTC, _CTC),
    ]
)
_IDS, _MASK, _TOLD = "ids", "mask", "lengths"
_MASK_AT = 3  # the place of `attn_mask`
_POSITIONS_LEAST = 32
_SAMPLES_LEAST = 2
_TABLE_LEAST = 16  # rows: what has fewer is a type or a flag
_MOST_CALLS = 256
_MOST_BYTES = 64 << 20  # that are kept until the window closes
_MOST_ELEMENTS = 1 << 24  # of a mask that are looked at: what is computed of them takes memory
_MASKED = -1e4  # a mask that is added has this or less
_BINS = 64  # of the counts of samples by their lengths
_MOST_ARRAYS = 16
_MOST_ARRAY_BYTES = 4 << 20  # of an array of JAX, which is copied to the host


class _Call(NamedTuple):
    """What a function is given: it says the lengths of samples of `positions`, while `version` is its own."""

    of: str
    values: Any
    positions: int
    version: int | None


class Lengths:
    """Of one window."""

    def __init__(self) -> None:
        self._calls: dict[tuple[Any, ...], _Call] = {}
        self._bytes = 0
        self._torch: Any = None
        self._given: GivenArrays | None = None  # where JAX is used
        self._devices: tuple[str, ...] = ()
        self.kept: dict[int, int] = {}  # bytes on each GPU that would be free without us, once counted

    def start(self, frameworks: Iterable[str]) -> None:
        """Listen from now on, unless the switch is off."""
        wanted = os.environ.get(SWITCH, "1")
        if wanted == "0":
            return
        names = list(frameworks)
        if "jax" in names:
            self._given = GivenArrays(_has_shape_of_ids)
            self._given.open()
        torch = sys.modules.get("torch")
        if torch is None or "torch" not in names:
            return
        try:
            self._devices = devices_of(torch, wanted == "cpu")
        except Exception:  # half imported, or another version
            return
        self._torch = torch
        self.resume()

    def pause(self) -> None:
        """Listen no more, until resumed."""
        if self._given is not None:
            self._given.close()
        if self._torch is not None:
            _EARS.close(self._torch, self)

    def resume(self) -> None:
        """Listen again."""
        if self._given is not None:
            self._given.open()
        if self._torch is not None:
            _EARS.open(self._torch, self)

    def forget(self) -> None:
        """Nothing is to be counted."""
        self.pause()
        self._given = None
        self._calls.clear()

    def note(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A function is called with these; what they say of lengths is kept."""
        try:
            if len(self._calls) >= _MOST_CALLS:
                return
            if name == _EMBEDDING:
                self._note_ids(*arguments[:2])
            elif name == _ATTENTION:
                mask = arguments[_MASK_AT] if len(arguments) > _MASK_AT else options.get("attn_mask")
                if mask is not None:
                    self._note_mask(mask, *arguments[:2])
            else:
                self._note_told(arguments[0], arguments[2])
        except Exception:  # what does not tell: the job's own call says what is wrong with it
            return

    def _note_ids(self, table: Any, ids: Any) -> None:
        if ids.ndim == 2 and len(table) >= _TABLE_LEAST and not ids.dtype.is_floating_point:
            self._keep(_IDS, ids, *ids.shape)

    def _note_mask(self, mask: Any, query: Any, key: Any) -> None:
        """One of its own for each sample, of positions that attend to one another: the free part of a cache is not padding."""
        if mask.ndim != 4 or query.ndim != 4 or mask.shape[0] != query.shape[0] or query.shape[2] < 2:
            return
        if mask.shape[3] == key.shape[2] == query.shape[2]:
            self._keep(_MASK, mask, mask.shape[0], mask.shape[3])

    def _note_told(self, scores: Any, told: Any) -> None:
        if scores.ndim != 3:
            return
        if isinstance(told, (tuple, list)):
            self._keep_numbers(tuple(told), scores.shape[0])
        elif told.ndim == 1 and told.device.type == "cpu":
            self._keep(_TOLD, told, len(told), scores.shape[0], ("cpu",))

    def _keep_numbers(self, told: tuple[Any, ...], positions: int) -> None:
        """Not those that would be read from a device, or that a compiler traces with."""
        if len(told) < _SAMPLES_LEAST or positions < _POSITIONS_LEAST or {*map(type, told)} != {int}:
            return
        self._calls[_TOLD, len(self._calls)] = _Call(_TOLD, told, int(positions), None)

    def _keep(
        self, of: str, values: Any, samples: int, positions: int, devices: tuple[str, ...] = ()
    ) -> None:
        torch = self._torch
        if type(values) is not torch.Tensor or samples < _SAMPLES_LEAST or positions < _POSITIONS_LEAST:
            return  # also what a compiler traces with
        if values.device.type not in (devices or self._devices) or is_transformed(torch, values):
            return
        version = None if values.is_inference() else values._version
        same = (of, values.data_ptr(), version, tuple(values.shape))
        taken = values.untyped_storage().nbytes()
        # A part of something large may be all that was alive of it.
        if same not in self._calls and self._bytes + taken <= _MOST_BYTES:
            self._bytes += taken
            self._calls[same] = _Call(of, values.detach(), int(positions), version)

    def count(self) -> list[dict[str, Any]]:
        """framework, of, shape, calls, mean and longest (of the batches, in positions), counts; empty where there are none."""
        self.pause()
        calls, self._calls = list(self._calls.values()), {}
        self.kept = kept_bytes(self._torch, [each.values for each in calls])
        rows: list[dict[str, Any]] = []
        for framework in ("torch", "jax"):
            try:
                rows += _joined(framework, self._in_torch(calls) if framework == "torch" else self._in_jax())
            except Exception:  # a device in error: the rest of the recording is worth having
                continue
        return rows

    def _in_jax(self) -> list[_Batch]:
        if self._given is None:
            return []
        # What is on a device at the end was mostly given to a function before, and would count twice.
        given = [each for each in self._given.taken() if _is_there(each)]
        self.kept |= kept_by_jax(given)
        given = given or _on_devices()
        numpy = sys.modules["numpy"]
        with sys.modules["jax"].transfer_guard("allow"):
            return [_batch_of(numpy, each) for each in given]

    def _in_torch(self, calls: list[_Call]) -> list[_Batch]:
        torch = self._torch
        if not calls or torch._C._len_torch_dispatch_stack():
            return []
        uses_cuda = torch.cuda.is_initialized()
        if uses_cuda and (torch.cuda.is_current_stream_capturing() or not has_room(torch.cuda)):
            return []
        with torch._C.DisableTorchFunction(), torch.no_grad():
            # What was written to since is something else, perhaps half of a batch to come.
            current = [each for each in calls if each.version is None or each.version == each.values._version]
            found = [_LOOKS[each.of](torch, each.values).cpu() for each in current]
            return [
                _Batch(each.of, each.positions, lengths.tolist())
                for each, lengths in zip(current, found, strict=True)
            ]


class _Batch(NamedTuple):
    """The lengths of the samples of one batch."""

    of: str
    positions: int
    lengths: list[int]


def _of_ids(torch: Any, ids: Any) -> Any:
    """Up to the last id that is not the one that most samples end in, or from the first that is not the one that most begin with.

    Nothing of what is the same for all samples: these are numbers of positions.
    """
    count = ids.shape[1]
    places = torch.arange(1, count + 1, device=ids.device)
    after = ids != torch.mode(ids[:, -1]).values
    before = ids != torch.mode(ids[:, 0]).values
    ended = torch.where(after, places, 0).amax(1)
    begun = torch.where(before, places.flip(0), 0).amax(1)
    return torch.where(ended.sum() <= begun.sum(), ended, begun) * (ids != ids[:1]).any()


def _of_mask(torch: Any, mask: Any) -> Any:
    """From the first to the last position that any other attends to, by the first head."""
    samples, _, queries, count = mask.shape
    attended = mask[:, 0, :: max(1, samples * queries * count // _MOST_ELEMENTS)]
    seen = (attended if mask.dtype is torch.bool else attended > _MASKED).any(1)
    places = torch.arange(1, count + 1, device=mask.device)
    ended = torch.where(seen, places, 0).amax(1)
    begun = torch.where(seen, places.flip(0), 0).amax(1)
    return (ended + begun - count).clamp(min=0)


def _as_told(torch: Any, told: Any) -> Any:
    return torch.as_tensor(told, device="cpu")


_LOOKS: dict[str, Any] = {_IDS: _of_ids, _MASK: _of_mask, _TOLD: _as_told}


def _on_devices() -> list[Any]:
    """Ids that are on a device at the end of a step, as those of the batch are in most loops."""
    if not getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None):
        return []
    return [each for each in sys.modules["jax"].live_arrays() if _is_of_ids(each)][:_MOST_ARRAYS]


def _batch_of(numpy: Any, array: Any) -> _Batch:
    """Ids, or a mask of nothing but zeros and ones."""
    values = numpy.asarray(array)
    is_mask = values.min() >= 0 and values.max() <= 1
    return _Batch(_MASK if is_mask else _IDS, array.shape[1], _of_array(numpy, values))


def _has_shape_of_ids(array: Any) -> bool:
    """Of two dimensions, samples and positions; a mask has them, too, unless it is a table of which positions see each other."""
    dtype = str(array.dtype)
    if array.ndim != 2 or dtype not in ("int32", "int64", "uint16", "bool"):
        return False
    samples, positions = array.shape
    is_table = dtype == "bool" and samples == positions
    return bool(samples >= _SAMPLES_LEAST and positions >= _POSITIONS_LEAST and not is_table)


def _is_of_ids(array: Any) -> bool:
    """Of such a shape, and not too large to be copied."""
    return _is_there(array) and _has_shape_of_ids(array) and array.nbytes <= _MOST_ARRAY_BYTES


def _is_there(array: Any) -> bool:
    """An array of NumPy, or one of JAX that a single device has and no function has taken over."""
    if not hasattr(array, "is_deleted"):
        return True
    return not array.is_deleted() and len(array.devices()) == 1 and bool(array.is_fully_addressable)


def _of_array(numpy: Any, ids: Any) -> list[int]:
    """As `_of_ids`."""
    places = numpy.arange(1, ids.shape[1] + 1)
    found = []
    for edge, counted in ((ids[:, -1], places), (ids[:, 0], places[::-1])):
        values, counts = numpy.unique(edge, return_counts=True)
        found.append(numpy.where(ids != values[counts.argmax()], counted, 0).max(1))
    lengths = min(found, key=lambda each: each.sum()) * (ids != ids[:1]).any()
    return [int(each) for each in lengths]


def _joined(framework: str, batches: list[_Batch]) -> list[dict[str, Any]]:
    """One row for all batches of a shape."""
    alike: dict[tuple[str, int, int], list[list[int]]] = {}
    for each in batches:
        # Samples of which nothing is left have ids that are all alike: flags, or what is filled in later.
        if sum(length > 0 for length in each.lengths) * 2 > len(each.lengths):
            alike.setdefault((each.of, len(each.lengths), each.positions), []).append(each.lengths)
    return [
        {
            "framework": framework,
            "of": of,
            "shape": [samples, positions],
            "calls": len(found),
            "mean": sum(map(sum, found)) / (len(found) * samples),
            "longest": sum(map(max, found)) / len(found),
            "counts": _counts(positions, [length for each in found for length in each]),
        }
        for (of, samples, positions), found in alike.items()
    ]


def _counts(positions: int, lengths: list[int]) -> list[int]:
    """How many samples are up to 1/64 of the positions long, up to 2/64, and so on."""
    counts = [0] * _BINS
    for length in lengths:
        counts[max(0, -(-length * _BINS // positions) - 1)] += 1
    return counts
