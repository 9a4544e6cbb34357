"""Cells of a notebook: recording begins in the first, the framework is imported in a later one. late_import.py FRAMEWORK FOLDER"""

from __future__ import annotations

import sys
from typing import Any

import stepscope
from tests.capture.jobs.facts import tell

CELLS = {
    "torch": "import torch\nwork = lambda: torch.randn(64, 64) @ torch.randn(64, 64)",
    "jax": "import jax.numpy as jnp\nwork = lambda: (jnp.ones((64, 64)) @ jnp.ones((64, 64))).block_until_ready()",
    "tensorflow": "import tensorflow as tf\nwork = lambda: tf.random.normal((64, 64)) @ tf.random.normal((64, 64))",
}

prof = stepscope.Profiler(sys.argv[2])
prof.start()
prof.step()
space: dict[str, Any] = {}
exec(CELLS[sys.argv[1]], space)
for _ in range(5):
    space["work"]()
    prof.step()
prof.stop()
report = prof.report(sections=("steps",))
tell(
    problems=prof.problems,
    framework=report.profile.framework,
    steps=report.steps.count,
    files=len(prof.files),
)
