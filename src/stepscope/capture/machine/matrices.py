"""How many entries of the huge matrices on the device are not zero, from a sample of their rows.

Where PyTorch uses no device, those of the host are looked at, where smaller ones are huge.

A profile has no values. Whether a product multiplies by zeros, as with the dense adjacency matrix of a sparse graph, only the
values say. They are looked at once a window has closed, between two steps: evenly spaced rows of a few matrices are counted on
the device, and only the counts come back. Nothing is imported or initialised here, and nothing that fails reaches the job.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from stepscope.capture.machine.heap import NotAll, objects_of

SWITCH = (
    "STEPSCOPE_MATRICES"  # in the environment: 0 to do without, cpu to look at those of the CPU in any case
)
_SIDE_LEAST = 2048
_BYTES_LEAST = 32 << 20
_SIDE_LEAST_ON_HOST = 1024  # a product takes a core milliseconds from here on
_BYTES_LEAST_ON_HOST = 4 << 20
_ROWS = 256  # of a matrix, about
_ENTRIES_AT_ONCE = 1 << 21  # a comparison with zero takes a byte for each
_MOST_SHAPES = 4  # JAX compiles for each of them
_MOST_OF_SHAPE = 4
# An allocation that fails would make PyTorch give its cache back, or end in a snapshot.
_FREE_LEAST = 256 << 20
_SECONDS = 0.5
_ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


def look(frameworks: Iterable[str]) -> list[dict[str, Any]]:
    """framework, shape, dtype, rows (sampled), nonzero (share of their entries) of huge matrices; empty where there are none."""
    wanted = os.environ.get(SWITCH, "1")
    if wanted == "0":
        return []
    deadline = time.monotonic() + _SECONDS
    found: list[dict[str, Any]] = []
    for name, of_framework in _LOOKS.items():
        module = sys.modules.get(name)
        if module is None or name not in frameworks:
            continue
        try:
            of_framework(module, wanted == "cpu", deadline, found)
        except Exception:  # another version, a device in error: the rest of the recording is worth having
            continue
    return found


def _of_torch(torch: Any, with_cpu: bool, deadline: float, found: list[dict[str, Any]]) -> None:
    """A dispatch mode would see our ops, and the capture of a CUDA graph would keep them."""
    uses_cuda = torch.cuda.is_initialized()
    if torch._C._len_torch_dispatch_stack():
        return
    if uses_cuda and (torch.cuda.is_current_stream_capturing() or not has_room(torch.cuda)):
        return
    devices = devices_of(torch, with_cpu)
    with torch._C.DisableTorchFunction(), torch.no_grad():
        tensors = [each for each in _tensors(torch) if _is_huge_tensor(torch, each, devices)]
        for tensor in _chosen(tensors, lambda each: each.data_ptr()):
            if (
                found and time.monotonic() > deadline
            ):  # a busy machine may take that long to list what there is
                return
            rows, count = _count_in_tensor(tensor)
            found.append(_row("torch", tensor, rows, count))


def devices_of(torch: Any, with_cpu: bool) -> tuple[str, ...]:
    """Where PyTorch computes: the host, unless it uses a device or is asked for both."""
    if not torch.cuda.is_initialized():
        return ("cpu",)
    return ("cuda", "cpu") if with_cpu else ("cuda",)


def has_room(cuda: Any) -> bool:
    """Whether a few MiB are free, in the allocator's cache or outside of it."""
    cached = cuda.memory_reserved() - cuda.memory_allocated()
    return bool(cached >= _FREE_LEAST or cuda.mem_get_info()[0] >= _FREE_LEAST)


def _tensors(torch: Any) -> list[Any]:
    """By identity of the type: what is derived from a tensor behaves as it likes. Some of them, where there is too much else."""
    found: list[Any] = []
    with suppress(NotAll):
        found.extend(objects_of(lambda kind: kind is torch.Tensor or kind is torch.nn.Parameter))
    return found


def _is_huge_tensor(torch: Any, tensor: Any, devices: tuple[str, ...]) -> bool:
    """A plain matrix with all of its memory: that of a sharded weight may be given back between two uses."""
    if tensor.layout is not torch.strided or tensor.device.type not in devices:
        return False
    if not _is_huge(tensor, tensor.device.type == "cpu") or not (
        tensor.is_contiguous() or tensor.t().is_contiguous()
    ):
        return False
    taken = (tensor.storage_offset() + tensor.numel()) * tensor.element_size()
    return bool(taken <= tensor.untyped_storage().nbytes())


def _count_in_tensor(tensor: Any) -> tuple[int, int]:
    """A few rows at a time, so that little memory is needed."""
    rows, columns = tensor.shape
    stride = _stride(rows)
    sample = tensor[stride // 2 :: stride]
    at_once = max(1, _ENTRIES_AT_ONCE // columns)
    parts = [(sample[at : at + at_once] != 0).sum() for at in range(0, len(sample), at_once)]
    return len(sample), int(sum(parts[1:], parts[0]).item())


def _of_jax(jax: Any, with_cpu: bool, deadline: float, found: list[dict[str, Any]]) -> None:
    if not getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None):
        return
    platforms = ("gpu", "cuda", "rocm", *(("cpu",) if with_cpu else ()))
    arrays = [each for each in jax.live_arrays() if _is_huge_array(each, platforms)]
    if not arrays:
        return
    with jax.transfer_guard("allow"):
        for array in _chosen(arrays, id):
            if time.monotonic() > deadline:
                return
            stride = _stride(array.shape[0])
            sampled = len(range(stride // 2, array.shape[0], stride))
            found.append(_row("jax", array, sampled, int(_counting(jax)(array))))


def _is_huge_array(array: Any, platforms: tuple[str, ...]) -> bool:
    if array.is_deleted() or not _is_huge(array):
        return False
    devices = array.devices()
    return len(devices) == 1 and next(iter(devices)).platform in platforms and array.is_fully_addressable


_compiled: list[Any] = []


def _counting(jax: Any) -> Any:
    """The one function, which JAX compiles for each shape; it fuses the rows' selection with the count."""
    if not _compiled:

        def count_nonzero_rows(array: Any) -> Any:
            stride = _stride(array.shape[0])
            return (array[stride // 2 :: stride] != 0).sum()

        _compiled.append(jax.jit(count_nonzero_rows))
    return _compiled[0]


def _stride(rows: int) -> int:
    """Odd, so that no pattern in blocks of powers of two repeats with it.

    The first sampled row is half of that away from the matrix's: graphs are often sorted, and their first nodes have by far the most edges.
    """
    return (rows // _ROWS) | 1


def _is_huge(matrix: Any, on_host: bool = False) -> bool:
    side, least = (_SIDE_LEAST_ON_HOST, _BYTES_LEAST_ON_HOST) if on_host else (_SIDE_LEAST, _BYTES_LEAST)
    if matrix.ndim != 2 or min(matrix.shape) < side:
        return False
    item_bytes = _ITEM_BYTES.get(_dtype(matrix), 0)
    return bool(matrix.shape[0] * matrix.shape[1] * item_bytes >= least)


def _dtype(matrix: Any) -> str:
    return str(matrix.dtype).removeprefix("torch.")


def _chosen(matrices: list[Any], identity: Any) -> list[Any]:
    """The largest shapes, square ones first: such are the matrices of graphs. A few of each, since others may look alike."""
    by_shape: dict[tuple[Any, ...], dict[int, Any]] = {}
    for each in matrices:
        same = by_shape.setdefault((*each.shape, _dtype(each)), {})
        if len(same) < _MOST_OF_SHAPE:
            same.setdefault(identity(each), each)
    ranked = sorted(by_shape, key=lambda shape: (shape[0] != shape[1], -shape[0] * shape[1], shape[2]))
    return [each for shape in ranked[:_MOST_SHAPES] for each in by_shape[shape].values()]


def _row(framework: str, matrix: Any, rows: int, count: int) -> dict[str, Any]:
    return {
        "framework": framework,
        "shape": [int(side) for side in matrix.shape],
        "dtype": _dtype(matrix),
        "rows": rows,
        "nonzero": count / (rows * int(matrix.shape[1])),
    }


_LOOKS = {"torch": _of_torch, "jax": _of_jax}
