"""Changes to a JAX job."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any


def use_tf32(jax: Any) -> None:
    """Products of float32 may use TF32."""
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")


def use_bfloat16(jax: Any) -> None:
    """Products of float32 may use bfloat16."""
    jax.config.update("jax_default_matmul_precision", "bfloat16")


def use_compilation_cache(jax: Any) -> None:
    """Compiled programs are kept for the next process."""
    folder = os.environ.get("STEPSCOPE_JAX_CACHE") or str(Path(tempfile.gettempdir()) / "stepscope-jax-cache")
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
