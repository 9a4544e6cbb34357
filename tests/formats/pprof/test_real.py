"""A device memory profile that JAX itself has just written; skipped where JAX is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.analysis.snapshot.explain import explain
from stepscope.formats import read
from stepscope.formats.source import Source

MIB = 1 << 20
JOB = """
import sys
import jax, jax.numpy as jnp

def make_weights():
    return jnp.ones((1024, 1024), jnp.float32)

def keep_activations(weights):
    return [jnp.tanh(weights * each) for each in range(3)]

weights = make_weights()
kept = keep_activations(weights)
jax.block_until_ready(kept)
jax.profiler.save_device_memory_profile(sys.argv[1])
"""


def test_bytes_by_line(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    job, profile = tmp_path / "job.py", tmp_path / "memory.prof"
    job.write_text(JOB, "utf-8")
    subprocess.run(
        [sys.executable, str(job), str(profile)], env=os.environ | {"JAX_PLATFORMS": "cpu"}, check=True
    )
    trace = read(Source(str(profile)))
    assert trace.info.format == "pprof"
    (found,) = explain(trace)
    by_line: dict[int, int] = {}
    for row in found.by_line.iter_rows(named=True):
        assert row["site_file"] == str(job)
        by_line[row["site_line"]] = by_line.get(row["site_line"], 0) + row["bytes"]
    assert by_line == {6: 4 * MIB, 9: 12 * MIB}
