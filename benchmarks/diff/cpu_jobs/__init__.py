"""Twenty small jobs of three frameworks on the CPU, recorded through our capture as anybody would: they show whether the diff raises false alarms.

A job is a function that makes `step()` and batches of a size; the frameworks are imported only in the process that runs one. The noise that the
diff assumes was calibrated on recordings of all of them but those of CONFIRMING, which were recorded afterwards.
"""

from __future__ import annotations

from benchmarks.diff.cpu_jobs import jax_jobs, tensorflow_jobs, torch_jobs

JOBS = {**torch_jobs.JOBS, **jax_jobs.JOBS, **tensorflow_jobs.JOBS}
CONFIRMING = ("torch_generator", "torch_graph", "jax_vmap", "jax_eager", "tf_autoencoder", "keras_pictures")
