"""A small training job as PyTorch records it, on CUDA or ROCm, with as many ranks as asked: a few of everything.

Real recordings of that breadth are large, and large files make slow cases. Nothing here is measured: the figures only
have to be consistent, so that every section of the report has rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

STEPS = 4
STEP_US = 1000.0
BASE_US = 3_851_366_792_000.0
MAIN, LOADER = 100, 101
COMPUTE, COMMUNICATION = 7, 13


@dataclass
class Recording:
    """The events of one rank, and the numbers that link them."""

    rank: int
    ranks: int
    rocm: bool
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0
    allocated: int = 1 << 20

    @property
    def pid(self) -> int:
        """Every rank is a process."""
        return 4000 + self.rank

    def host(self, category: str, name: str, at: float, lasts: float, tid: int = MAIN, **args: Any) -> None:
        """An event of a host thread."""
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": self.pid, "tid": tid, "ts": at, "dur": lasts, "args": args}
        )  # fmt: skip

    def device(self, category: str, name: str, at: float, lasts: float, stream: int, **args: Any) -> None:
        """An event of a stream."""
        told = {"device": 0, "stream": stream, "context": 1, "correlation": self.correlation, **args}
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream, "ts": at, "dur": lasts, "args": told}
        )  # fmt: skip

    def flow(self, at: float, stream: int, until: float) -> None:
        """The arrow from a launch to its kernel."""
        same = {"cat": "ac2g", "name": "ac2g", "id": self.correlation}
        self.events.append({"ph": "s", "pid": self.pid, "tid": MAIN, "ts": at, **same})
        self.events.append({"ph": "f", "pid": 0, "tid": stream, "ts": until, "bp": "e", **same})

    def op(self, name: str, at: float, lasts: float, **args: Any) -> None:
        """An operation with shapes and a stack."""
        told = {
            "External id": len(self.events), "Ev Idx": len(self.events), "Sequence number": 7, "Fwd thread id": 0,
            "Input Dims": [[64, 128], [128, 32]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""],
            "Call stack": "train.py(12): step;model.py(30): forward",
        }  # fmt: skip
        self.host("cpu_op", name, at, lasts, **{**told, **args})

    def kernel(self, name: str, at: float, behind: float, lasts: float) -> None:
        """A launch and its kernel; ROCm tells the extent of the launch, CUDA that of the kernel."""
        self.correlation += 1
        extent: dict[str, Any] = {"grid": [16, 2, 1], "block": [64, 1, 1], "shared memory": 4096}
        if self.rocm:
            self.host("cuda_runtime", "hipLaunchKernel", at, 5.0, correlation=self.correlation, kernel=name,
                      stream="0x55d0", **extent)  # fmt: skip
            self.device("kernel", name, at + behind, lasts, COMPUTE, kind="Dispatch Kernel")
        else:
            self.host("cuda_runtime", "cudaLaunchKernel", at, 5.0, correlation=self.correlation, cbid=211)
            self.device("kernel", name, at + behind, lasts, COMPUTE, **extent,
                        **{"registers per thread": 80, "est. achieved occupancy %": 40, "warps per SM": 8.5})  # fmt: skip
        self.flow(at, COMPUTE, at + behind)

    def copy(self, at: float) -> None:
        """A copy to the device."""
        self.correlation += 1
        if self.rocm:
            self.host("cuda_runtime", "hipMemcpyAsync", at, 9.0, correlation=self.correlation, size="262144",
                      src="0x5567", dst="0x7fda", kind="1")  # fmt: skip
            self.device("gpu_memcpy", "CopyHostToDevice", at + 4, 20.0, COMPUTE, kind="HtoD")
        else:
            self.host("cuda_runtime", "cudaMemcpyAsync", at, 9.0, correlation=self.correlation, cbid=41)
            self.device("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 4, 20.0, COMPUTE, bytes=262144,
                        **{"memory bandwidth (GB/s)": 13.1})  # fmt: skip

    def reduce(self, at: float, step: int) -> None:
        """A collective of all ranks; the later the rank, the later it joins."""
        self.correlation += 1
        begins = at + 10 * self.rank
        told: dict[str, Any] = {
            "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 65536, "Out msg nelems": 65536,
            "Group size": self.ranks, "Process Group Name": "0", "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(range(self.ranks))), "Seq": step,
        }  # fmt: skip
        self.op("c10d::allreduce_", begins - 8, 20.0)
        self.host("user_annotation", "nccl:all_reduce", begins - 6, 12.0, **told)
        launch = "hipExtLaunchKernel" if self.rocm else "cudaLaunchKernelExC"
        self.host("cuda_runtime", launch, begins - 3, 5.0, correlation=self.correlation)
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        self.device(
            "kernel", name, begins, at + 60 - begins, COMMUNICATION, grid=[8, 1, 1], block=[512, 1, 1], **told
        )
        self.flow(begins - 3, COMMUNICATION, begins)

    def memory(self, at: float, size: int, address: int) -> None:
        """An allocation, or with a negative size the end of one."""
        self.allocated += size
        args = {
            "Total Reserved": 1 << 24, "Total Allocated": self.allocated, "Bytes": size, "Device Id": 0,
            "Device Type": 1, "Addr": address,
        }  # fmt: skip
        self.events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": self.pid,
                            "tid": MAIN, "ts": at, "args": args})  # fmt: skip


def _record_step(made: Recording, step: int) -> None:
    at = BASE_US + step * STEP_US
    product = "Cijk_Ailk_Bljk_SB_MT64x64x16" if made.rocm else "sm90_xmma_gemm_f32f32_tn_n_tilesize64x64"
    made.host("user_annotation", f"ProfilerStep#{step}", at, STEP_US - 20)
    made.host("python_function", "train.py(12): step", at + 1, 900.0, **{"Python id": step * 2 + 1})
    made.host("python_function", "nn.Module: Linear_0", at + 90, 200.0,
              **{"Python id": step * 2 + 2, "Python parent id": step * 2 + 1, "Python module id": 0})  # fmt: skip
    made.host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 5, 60.0)
    made.op("aten::to", at + 66, 15.0)
    made.copy(at + 68)
    made.memory(at + 95, 8192, 4096 * (step + 1))
    made.op("aten::linear", at + 100, 80.0)
    made.op("aten::addmm", at + 105, 60.0)
    made.kernel(product, at + 120, 20, 150.0)
    made.op("aten::relu", at + 190, 40.0)
    made.kernel("void at::native::vectorized_elementwise_kernel<4, float>(int)", at + 200, 100, 30.0)
    made.op("autograd::engine::evaluate_function: AddmmBackward0", at + 300, 120.0)
    made.op("aten::mm", at + 305, 60.0)
    made.kernel(product, at + 320, 20, 170.0)
    if made.ranks > 1:
        made.reduce(at + 520, step)
    made.host("user_annotation", "Optimizer.step#SGD.step", at + 600, 150.0)
    made.op("aten::_foreach_add_", at + 610, 100.0)
    made.kernel("multi_tensor_apply_kernel<TensorListMetadata<2>>", at + 640, 20, 60.0)
    made.correlation += 1
    waits = "hipDeviceSynchronize" if made.rocm else "cudaDeviceSynchronize"
    made.host("cuda_runtime", waits, at + 760, 90.0, correlation=made.correlation)
    made.memory(at + 930, -4096 if step % 2 else -8192, 4096 * (step + 1))


def document(rank: int = 0, ranks: int = 1, *, rocm: bool = False, steps: int = STEPS) -> dict[str, Any]:
    """What one rank wrote."""
    made = Recording(rank, ranks, rocm)
    for pid, name in ((made.pid, "python"), (0, "python")):
        made.events.append(
            {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}
        )
    named = {"ph": "M", "name": "thread_name", "pid": made.pid, "ts": 0}
    made.events.append({**named, "tid": MAIN, "args": {"name": f"thread {MAIN} (python)"}})
    for step in range(steps):
        _record_step(made, step)
    made.events.append(
        {"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "tid": 0, "ts": BASE_US, "args": {"util": 93}}
    )
    device = {
        "id": 0, "name": "AMD Instinct MI300X" if rocm else "NVIDIA H100", "totalGlobalMem": 80 << 30, "numSms": 132,
        "computeMajor": 9, "computeMinor": 0, "warpSize": 32, "maxThreadsPerMultiprocessor": 2048,
        "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 233472,
    }  # fmt: skip
    groups = [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": ranks,
               "ranks": list(range(ranks))}]  # fmt: skip
    header: dict[str, Any] = {
        "schemaVersion": 1, "deviceProperties": [device], "record_shapes": 1, "profile_memory": 1, "with_stack": 1,
        "displayTimeUnit": "ms", "baseTimeNanoseconds": 1_790_857_026_000_000_000,
    }  # fmt: skip
    if ranks > 1:
        header["distributedInfo"] = {
            "backend": "nccl",
            "rank": rank,
            "world_size": ranks,
            "pg_config": groups,
        }
    return {**header, "traceEvents": made.events, "traceName": f"rank{rank}.json"}


def files(ranks: int = 1, *, rocm: bool = False, steps: int = STEPS) -> dict[str, bytes]:
    """The files of all ranks by their names."""
    return {
        f"vm_{4000 + rank}.{1_794_720_343_957_724_681 + rank * 1_000_000}.pt.trace.json": json.dumps(
            document(rank, ranks, rocm=rocm, steps=steps)
        ).encode()
        for rank in range(ranks)
    }
