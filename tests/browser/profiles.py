"""A folder of real profiles of every format, and of a trace that means harm."""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
from pathlib import Path

from tests.builders.dumps import hang, put_dumps
from tests.builders.hostile import MARKUP, hostile_document
from tests.builders.snapshots import MIB, in_model, script, training

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
SAMPLE = ROOT / "src" / "stepscope" / "samples" / "tiny_gpt.pt.trace.json.gz"
CHROME = FIXTURES / "jax/plugins/profile/2026_11_15_02_05_58/vm.trace.json.gz"


def lay_out(folder: Path) -> Path:
    """All of them below one folder, each run in its own."""
    files = {
        "kineto_gpu/tiny_gpt.pt.trace.json.gz": SAMPLE,
        "before/slow.pt.trace.json.gz": FIXTURES / "diagnosis/torch_item.slow.pt.trace.json.gz",
        "after/mended.pt.trace.json.gz": FIXTURES / "diagnosis/torch_item.mended.pt.trace.json.gz",
        "chrome/job.trace.json.gz": CHROME,
        "vanishing/gone.pt.trace.json.gz": FIXTURES / "kineto/streams.pt.trace.json.gz",
    }
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / name)
    for name, source in {
        "xplane_jax": FIXTURES / "jax",
        "xplane_tf": FIXTURES / "tensorflow",
        "tf1_events": FIXTURES / "tf_events",
        "two_ranks": FIXTURES / "capture_gpu/torch_ddp",
    }.items():
        shutil.copytree(source, folder / name)
    put_dumps(folder / "dumps", hang())
    put_snapshots(folder)
    (folder / "broken").mkdir()
    (folder / "broken" / "broken.pt.trace.json.gz").write_bytes(b"\x1f\x8b\x08 this is no gzip at all")
    (folder / "hostile").mkdir()
    (folder / "hostile" / f"{MARKUP[4].split('&')[0].replace('/', '_')}.pt.trace.json.gz").write_bytes(
        gzip.compress(json.dumps(hostile_document(), allow_nan=False).encode())
    )
    return folder


def put_snapshots(folder: Path) -> None:
    """A job that keeps activations until a request fails, with a segment that is mostly free; segments alone; and the same job without the fault."""
    job = training(6, leak=True)
    job.split(job.take(3 * MIB, script(14)), 20 * MIB)
    job.fail(512 * MIB, in_model(21, script(10)))
    bare = [{**segment, "blocks": [{**block, "frames": []} for block in segment["blocks"]]} for segment in job.snapshot()["segments"]]  # fmt: skip
    for name in ("snapshot", "snapshot_bare", "snapshot_sound"):
        (folder / name).mkdir()
    training(6).write(folder / "snapshot_sound" / "snapshot.pickle")
    job.write(folder / "snapshot" / "snapshot.pickle")
    (folder / "snapshot_bare" / "segments.pickle").write_bytes(pickle.dumps(bare))
