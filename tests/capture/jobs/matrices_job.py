"""A job with huge matrices: python matrices_job.py FRAMEWORK FOLDER [fails]. Objects that answer anything live beside them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import stepscope
from stepscope.capture.machine import matrices

SIDE = 4096


class Proxy:
    """Whoever asks it anything, or what it is, touches the job."""

    touched: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:
        Proxy.touched.append(name)
        raise RuntimeError("asked")


def torch_matrices() -> list[Any]:
    """A diagonal, its transpose, a full weight; a subclass, one without memory, and a sparse one, which are left out."""
    import torch

    class Own(torch.Tensor):
        pass

    diagonal = torch.eye(SIDE)
    weight = torch.nn.Linear(SIDE, 2 * SIDE)
    given_back = torch.ones(SIDE + 1, SIDE + 1)
    given_back.untyped_storage().resize_(0)
    own = Own(SIDE + 2, SIDE + 2).fill_(1)
    sparse = torch.eye(SIDE + 3).to_sparse_csr()
    small = torch.ones(SIDE, 16)
    integers = torch.ones(SIDE + 4, SIDE + 4, dtype=torch.int32)
    return [diagonal, diagonal.t(), weight, given_back, own, sparse, small, integers]


def jax_matrices() -> list[Any]:
    """A diagonal of 16 bits and a full matrix; a deleted one is left out."""
    import jax.numpy as jnp

    deleted = jnp.ones((SIDE + 1, SIDE + 1))
    deleted.delete()
    return [jnp.eye(SIDE, dtype=jnp.bfloat16), jnp.ones((2 * SIDE, SIDE)), deleted, jnp.ones((SIDE, 16))]


def main() -> None:
    """Record three steps; with `fails` an error ends them. Then say what is seen without a Profiler, and how long that takes."""
    framework, folder, fails = sys.argv[1], Path(sys.argv[2]), len(sys.argv) > 3
    kept = [torch_matrices() if framework == "torch" else jax_matrices(), Proxy()]
    try:
        with stepscope.profile(folder, backends=(framework,), telemetry=False) as prof:
            for _ in range(3):
                time.sleep(0.001)
                prof.step()
            if fails:
                raise ValueError("of the job")
    except ValueError:
        pass
    begin = time.perf_counter()
    seen = matrices.look([framework])
    length = time.perf_counter() - begin
    others = [name for name in ("torch", "jax") if name in sys.modules and name != framework]
    told = {"again": seen, "seconds": length, "others": others, "touched": Proxy.touched, "kept": len(kept)}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
