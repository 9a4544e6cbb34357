"""Changes to a JAX job."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Check = Callable[[], str]


def use_tf32(jax: Any) -> Check:
    """Products of float32 may use TF32."""
    return _keep(jax, "jax_default_matmul_precision", "tensorfloat32")


def use_bfloat16(jax: Any) -> Check:
    """Products of float32 may use bfloat16."""
    return _keep(jax, "jax_default_matmul_precision", "bfloat16")


def use_compilation_cache(jax: Any) -> None:
    """Compiled programs are kept for the next process."""
    folder = os.environ.get("STEPSCOPE_JAX_CACHE") or str(Path(tempfile.gettempdir()) / "stepscope-jax-cache")
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def _keep(jax: Any, name: str, value: str) -> Check:
    """Set the option, and leave it so where the script sets it later."""
    plain = jax.config.update
    plain(name, value)

    def update(option: str, wanted: Any) -> None:
        if option != name:
            plain(option, wanted)

    jax.config.update = update
    return lambda: "" if getattr(jax.config, name) == value else "the job sets it back"
