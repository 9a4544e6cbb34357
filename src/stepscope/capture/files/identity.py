"""The identity of this worker: its rank, the size of its job, its host and process, as its launcher reports them."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any


@dataclass(frozen=True)
class Identity:
    """One process of a job. Unknown stays None. `job` is the same for all workers of a job, and for no other job nearby."""

    host: str
    pid: int
    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    source: str | None = None
    job: str = ""

    @property
    def worker(self) -> str:
        """The name that PyTorch, too, gives its files: host and process."""
        return f"{self.host}_{self.pid}"


@dataclass(frozen=True)
class _Claim:
    source: str
    rank: int | None
    world_size: int | None
    local_rank: int | None = None


_ENVIRONMENTS = (
    ("environment", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    ("SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)
# What all workers of a job have in common, and other jobs on the same file system do not.
_JOB_VARIABLES = (
    "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "PMI_JOBID", "PBS_JOBID",
    "LSB_JOBID", "MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "COORDINATOR_ADDRESS", "STEPSCOPE_RUN",
)  # fmt: skip


def identify(environment: Mapping[str, str] | None = None) -> Identity:
    """This process, as the frameworks and the launcher's environment describe it. Nothing is asked that would have to start first."""
    env = os.environ if environment is None else environment
    found = next(_claims(env), _Claim("", None, None))
    return Identity(
        host=host_name(),
        pid=os.getpid(),
        rank=found.rank,
        world_size=found.world_size,
        local_rank=found.local_rank,
        source=found.source or None,
        job=_job(env, found.world_size),
    )


def host_name() -> str:
    """The machine's name, fit for a file's name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", socket.gethostname()) or "localhost"


def _claims(env: Mapping[str, str]) -> Iterator[_Claim]:
    for ask in (_torch, _jax):
        try:
            claim = ask(env)
        except Exception:  # a framework that is half initialised knows nothing
            continue
        if claim is not None:
            yield claim
    claim = _tf_config(env)
    if claim is not None:
        yield claim
    for source, rank, world, local in _ENVIRONMENTS:
        number = _number(env.get(rank))
        # One task of a SLURM allocation is no distributed job.
        if number is not None and (source != "SLURM" or (_number(env.get(world)) or 0) > 1):
            yield _Claim(source, number, _number(env.get(world)), _number(env.get(local)))


def _torch(env: Mapping[str, str]) -> _Claim | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    rank, world = distributed.get_rank(), distributed.get_world_size()
    return _Claim("torch.distributed", rank, world, _number(env.get("LOCAL_RANK")))


def _jax(env: Mapping[str, str]) -> _Claim | None:
    """Asked only once its runtime is up: before that, asking would start it."""
    jax, bridge = sys.modules.get("jax"), sys.modules.get("jax._src.xla_bridge")
    if jax is not None and getattr(bridge, "_backends", None):
        if jax.process_count() > 1:
            return _Claim("jax", int(jax.process_index()), int(jax.process_count()))
        return None
    state: Any = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if state is None or getattr(state, "client", None) is None:
        return None
    return _Claim("jax", int(state.process_id), int(state.num_processes))


def _tf_config(env: Mapping[str, str]) -> _Claim | None:
    try:
        config = json.loads(env.get("TF_CONFIG") or "null")
        cluster, task = config["cluster"], config["task"]
        kinds = [kind for kind in ("chief", "worker") if cluster.get(kind)]
        if task["type"] not in kinds:
            return None
        before = len(cluster["chief"]) if task["type"] == "worker" and "chief" in kinds else 0
        return _Claim("TF_CONFIG", before + int(task["index"]), sum(len(cluster[kind]) for kind in kinds))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _job(env: Mapping[str, str], world_size: int | None) -> str:
    """A name for the job; empty for a worker on its own."""
    if (world_size or 1) <= 1 and "STEPSCOPE_RUN" not in env:
        return ""
    known = [f"{name}={env[name]}" for name in _JOB_VARIABLES if name in env]
    try:
        known.append(json.dumps(json.loads(env["TF_CONFIG"])["cluster"], sort_keys=True))
    except (KeyError, ValueError, TypeError):
        pass
    return blake2b(f"{world_size} {known}".encode(), digest_size=8).hexdigest()


def _number(text: str | None) -> int | None:
    try:
        value = int(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1 << 31 else None
