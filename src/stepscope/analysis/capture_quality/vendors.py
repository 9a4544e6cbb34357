"""Profilers of vendors see a framework from outside: what its own profiler could record is not a forgotten option of theirs."""

from __future__ import annotations

# By the format of their files.
VENDOR_TOOLS = {"nsys": "Nsight Systems", "rocprof": "rocprofv3"}
EMIT_SIZES = "with torch.autograd.profiler.emit_nvtx(record_shapes=True): around the steps"
