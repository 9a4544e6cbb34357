"""The profiles that the pipeline's cases are made of: every format, small, of one rank or several, real or made."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.fuzz import made_torch, made_xla
from stepscope.formats import read
from stepscope.formats.own_export.write import chrome_text
from stepscope.formats.source import Source

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"


@dataclass(frozen=True)
class Original:
    """A healthy profile: its files by their paths in its folder, none of them packed."""

    name: str
    files: dict[str, bytes]


def _recorded(*patterns: str) -> dict[str, bytes]:
    """Files of a fixture with the sidecars beside them, as they lie there."""
    found = {}
    for pattern in patterns:
        for path in sorted(FIXTURES.glob(pattern)):
            data = path.read_bytes()
            packed = path.suffix == ".gz"
            found[path.name.removesuffix(".gz")] = gzip.decompress(data) if packed else data
    return found


def _exported() -> dict[str, bytes]:
    """Our own export, which has a header and rows that no one else writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "one.pt.trace.json")
        path.write_bytes(next(iter(made_torch.files(steps=3).values())))
        # Its path is in the header, and would be another one each time.
        text = "".join(chrome_text(read(Source(str(path))))).replace(f"{folder}/", "")
    return {"exported.chrome.json": text.encode()}


def _plain() -> dict[str, bytes]:
    """Chrome events of nobody in particular: begin and end, async, counters, flows, instants."""
    events: list[dict[str, object]] = []
    for turn in range(12):
        at, same = turn * 100, {"pid": 1, "tid": turn % 2}
        events += [
            {"ph": "B", "name": "train_step", "ts": at, **same},
            {"ph": "X", "name": f"work {turn % 3}", "ts": at + 10, "dur": 40, "args": {"n": turn}, **same},
            {"ph": "b", "cat": "io", "id": turn, "name": "read", "ts": at + 15, **same},
            {"ph": "i", "name": "moment", "s": "g", "ts": at + 20, **same},
            {"ph": "C", "name": "queue", "ts": at + 30, "args": {"length": turn}, **same},
            {"ph": "s", "cat": "f", "id": turn, "name": "go", "ts": at + 31, **same},
            {"ph": "f", "cat": "f", "id": turn, "name": "go", "ts": at + 35, "bp": "e", "pid": 1, "tid": 1},
            {"ph": "e", "cat": "io", "id": turn, "name": "read", "ts": at + 50, **same},
            {"ph": "E", "ts": at + 90, **same},
        ]
    return {"plain.trace.json": json.dumps(events).encode()}


_MAKERS: dict[str, Callable[[], dict[str, bytes]]] = {
    "torch-cuda": made_torch.files,
    "torch-rocm": lambda: made_torch.files(rocm=True),
    "torch-cuda-ranks": lambda: made_torch.files(2, steps=2),
    "torch-rocm-ranks": lambda: made_torch.files(2, rocm=True, steps=2),
    "xla-gpu": made_xla.files,
    "xla-gpu-ranks": lambda: made_xla.files(2),
    "xla-tpu-ranks": lambda: made_xla.files(2, tpu=True),
    "exported": _exported,
    "plain": _plain,
    "kineto-streams": lambda: _recorded("kineto/streams.*"),
    "kineto-graph": lambda: _recorded("kineto/cuda_graph.*"),
    "kineto-sidecar": lambda: _recorded("capture_gpu/torch_graphs/*"),
    "tf-events": lambda: _recorded("tf_events/*"),
    "tf-xplane": lambda: _recorded("tensorflow/plugins/profile/*/*.xplane.pb"),
    "jax-xplane": lambda: _recorded("jax/plugins/profile/*/vm.xplane.pb"),
    "jax-json": lambda: _recorded("jax/plugins/profile/*/vm.trace.json.gz"),
}
NAMES = tuple(_MAKERS)


@cache
def original(name: str) -> Original:
    """The profile of this name, made or read once."""
    return Original(name, _MAKERS[name]())


def write(files: dict[str, bytes], folder: Path) -> None:
    """The files as a folder that can be loaded."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
