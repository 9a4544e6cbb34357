"""PyTorch's jobs."""

from __future__ import annotations

from benchmarks.diagnosis.job import Job
from benchmarks.diagnosis.torch_device_jobs import DEVICE_JOBS
from benchmarks.diagnosis.torch_healthy import HEALTHY
from benchmarks.diagnosis.torch_host_jobs import HOST_JOBS

JOBS: tuple[Job, ...] = (*HOST_JOBS, *DEVICE_JOBS, *HEALTHY)
