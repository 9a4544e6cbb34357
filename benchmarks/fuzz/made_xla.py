"""A small compiled program as XLA's profiler records it, with its code (HLO), on one or several ranks, GPUs or TPUs.

The code has one of each instruction that some analysis looks into: products, a convolution, a fusion, a library call, a
loop, a collective; and a buffer assignment.
"""

from __future__ import annotations

from typing import Any

from tests.builders.protobuf import number, packed
from tests.builders.xspace_bytes import PlaneBytes, space

STEPS = 3
STEP_PS = 1_000_000_000
MODULE, PROGRAM = "jit_train_step", 7
F32 = 11
FOLDER = "plugins/profile/2026_11_15_05_26_02"
_DETAILS = "regs:168 static_shared:16 dynamic_shared:213220 grid:2,66,1 block:384,1,1 occ_pct:18.75"
# name, opcode, operands, and whether it shows up on the device
_ENTRY: tuple[tuple[str, str, tuple[int, ...], bool], ...] = (
    ("params.1", "parameter", (), False),
    ("batch.2", "parameter", (), False),
    ("dot.3", "dot", (2, 1), True),
    ("loop_add_fusion.4", "fusion", (3,), True),
    ("convolution.5", "convolution", (4, 1), True),
    ("cublas-gemm.6", "custom-call", (5, 1), True),
    ("while.7", "while", (6,), False),
    ("all-reduce.8", "all-reduce", (7,), True),
    ("reduce.9", "reduce", (8,), True),
    ("tuple.10", "tuple", (9, 1), False),
)
_SHAPE = packed(3, number(2, F32) + packed(3, bytes([8, 8])))


def _text(field: int, value: str) -> bytes:
    return packed(field, value)


def _special(opcode: str, ranks: int) -> bytes:
    """The fields that only this kind of instruction has."""
    match opcode:
        case "dot":
            return packed(30, packed(1, bytes([1])) + packed(2, bytes([0]))) + packed(
                51, packed(1, bytes([2]))
            )
        case "fusion":
            return packed(38, bytes([2]))
        case "convolution":
            axis = number(1, 3) + number(2, 1) + number(3, 1) + number(4, 1)
            places = b"".join(number(key, at) for key, at in ((7, 0), (8, 1), (9, 0), (10, 1)))
            return packed(15, packed(1, axis)) + packed(
                16, places + packed(11, bytes([1])) + packed(12, bytes([1]))
            )
        case "custom-call":
            config = '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'
            return _text(28, "__cublas$gemm") + packed(43, config)
        case "while":
            return packed(38, bytes([2, 2])) + packed(43, '{"known_trip_count":{"n":"4"}}')
        case "all-reduce":
            return packed(38, bytes([2])) + packed(49, packed(1, bytes(range(ranks)))) + number(26, 1)
        case "reduce":
            return packed(38, bytes([2]))
    return b""


def _instruction(name: str, opcode: str, ident: int, operands: tuple[int, ...], ranks: int) -> bytes:
    path = f"jit(train_step)/{'transpose(jvp(layer))' if ident > 6 else 'jvp(layer)'}/{opcode}"
    made = _text(1, name) + _text(2, opcode) + _SHAPE + packed(7, _text(2, path)) + number(35, ident)
    return made + (packed(36, bytes(operands)) if operands else b"") + _special(opcode, ranks)


def hlo(ranks: int = 1) -> bytes:
    """An HloProto: the module, and how its buffers are laid out."""
    entry = b"".join(
        packed(2, _instruction(name, opcode, at, operands, ranks))
        for at, (name, opcode, operands, _) in enumerate(_ENTRY, 1)
    )
    inner = b"".join(
        packed(2, _instruction(f"{opcode}.{at}", opcode, at, operands, ranks))
        for at, (opcode, operands) in enumerate(
            (("parameter", ()), ("add", (11,)), ("multiply", (11, 12))), 11
        )
    )
    computations = packed(3, _text(1, "main") + entry + number(5, 1))
    computations += packed(3, _text(1, "fused") + inner + number(5, 2))
    schedule = packed(7, packed(1, number(1, 1) + packed(2, packed(1, bytes(range(1, len(_ENTRY) + 1))))))
    assignment = packed(15, number(1, ranks) + number(2, 1) + packed(3, packed(1, bytes(range(ranks)))))
    module = (
        _text(1, MODULE)
        + _text(2, "main")
        + computations
        + number(5, 7)
        + number(6, 1)
        + schedule
        + assignment
    )
    return packed(1, module) + packed(3, _buffers())


def _buffers() -> bytes:
    """Arguments, an output and a block of temporary ones."""
    made = b"".join(
        packed(1, number(1, at) + number(2, 256) + packed(3, number(4, at)))
        for at in range(1, len(_ENTRY) + 1)
    )
    places = {
        at: packed(9, number(1, at) + number(2, 256 * at) + number(3, 256))
        for at in range(1, len(_ENTRY) + 1)
    }
    made += packed(3, number(1, 0) + number(2, 256) + number(5, 1) + number(7, 1) + places[1])
    made += packed(3, number(1, 1) + number(2, 256) + number(5, 1) + places[2])
    return made + packed(3, number(1, 2) + number(2, 2048) + b"".join(places[at] for at in range(3, 9)))


def _metadata(ranks: int) -> PlaneBytes:
    plane = PlaneBytes("/host:metadata")
    plane.describe(f"{MODULE}({PROGRAM})", hlo_proto=hlo(ranks))
    return plane


def _environment(rank: int) -> PlaneBytes:
    plane = PlaneBytes("Task Environment")
    plane.fact("profile_start_time", 1_794_720_343_957_724_681)
    plane.fact("profile_stop_time", 1_794_720_343_967_724_681 + rank)
    return plane


def _gpu_planes(rank: int) -> list[PlaneBytes]:
    host, gpu = PlaneBytes("/host:CPU"), PlaneBytes(f"/device:GPU:{rank}")
    gpu.fact("gpu_device_name", "NVIDIA H200")
    calls, work, copies = [], [], []
    ident = 0
    for step in range(STEPS):
        at = step * STEP_PS
        calls.append(host.event("train", at, STEP_PS - 50_000_000, step_num=step, _r=1))
        calls.append(host.event("$train.py:12 step", at + 1_000_000, STEP_PS - 60_000_000))
        calls.append(host.event("PjitFunction(train_step)", at + 20_000_000, 700_000_000))
        told: dict[str, Any] = {
            "allocator_name": "GPU_0_bfc",
            "allocation_bytes": 256,
            "requested_bytes": 200,
            "addr": 4096,
        }
        calls.append(
            host.event(
                "MemoryAllocation", at + 25_000_000, 0, **told, bytes_allocated=256, bytes_reserved=1024
            )
        )
        calls.append(
            host.event("[0] GpuExecutable::ExecuteThunks", at + 30_000_000, 600_000_000, run_id=step)
        )
        for place, (name, opcode, _, is_work) in enumerate(_ENTRY):
            if not is_work:
                continue
            ident += 1
            begins = at + 40_000_000 + place * 60_000_000
            calls.append(
                host.event("cuLaunchKernel", begins, 9_000_000, correlation_id=ident, device_id=rank)
            )
            kernel = (
                "ncclDevKernel_AllReduce_Sum_f32"
                if opcode == "all-reduce"
                else name.replace(".", "_").replace("-", "_")
            )
            work.append(
                gpu.event(kernel, begins + 20_000_000 + rank, 50_000_000, correlation_id=ident, hlo_module=MODULE, hlo_op=name,
                          program_id=PROGRAM, kernel_details=_DETAILS)
            )  # fmt: skip
        calls.append(
            host.event(
                "MemoryDeallocation", at + 900_000_000, 0, **told, bytes_allocated=0, bytes_reserved=1024
            )
        )
        ident += 1
        calls.append(
            host.event("cuMemcpyHtoDAsync", at + 5_000_000, 4_000_000, correlation_id=ident, device_id=rank)
        )
        copies.append(
            gpu.event("MemcpyH2D", at + 8_000_000, 6_000_000, correlation_id=ident,
                      memcpy_details="kind_src:pageable kind_dst:device size:4096 dest:0 async:1")
        )  # fmt: skip
    host.line("python", calls, 1, time_ns=1_794_720_343_957_724_681)
    gpu.line("Stream #14(Compute)", work, 14, time_ns=1_794_720_343_957_724_681)
    gpu.line("Stream #15(MemcpyH2D)", copies, 15, time_ns=1_794_720_343_957_724_681)
    return [host, gpu]


def _tpu_planes(rank: int) -> list[PlaneBytes]:
    host, tpu = PlaneBytes("/host:CPU"), PlaneBytes(f"/device:TPU:{rank}")
    tpu.fact("device_type_string", "TPU v5e")
    steps, modules, ops, calls = [], [], [], []
    for step in range(STEPS):
        at = step * STEP_PS
        calls.append(host.event("train", at, STEP_PS - 50_000_000, step_num=step, _r=1))
        steps.append(tpu.event(str(step), at + 20_000_000, 900_000_000))
        modules.append(tpu.event(f"{MODULE}({PROGRAM})", at + 20_000_000, 800_000_000, run_id=step))
        for place, (name, opcode, _, is_work) in enumerate(_ENTRY):
            if is_work:
                ops.append(tpu.event(f"%{name} = f32[8,8] {opcode}(...)", at + 30_000_000 + place * 60_000_000, 50_000_000,
                                     name, hlo_category=opcode, flops=1024, bytes_accessed=4096))  # fmt: skip
    host.line("python", calls)
    for name, events in (("Steps", steps), ("XLA Modules", modules), ("XLA Ops", ops)):
        tpu.line(name, events)
    return [host, tpu]


def files(ranks: int = 1, *, tpu: bool = False) -> dict[str, bytes]:
    """The files of all ranks by their names."""
    return {
        f"{FOLDER}/vm_rank{rank}.xplane.pb" if ranks > 1 else f"{FOLDER}/vm.xplane.pb": space(
            _metadata(ranks),
            *(_tpu_planes(rank) if tpu else _gpu_planes(rank)),
            _environment(rank),
            hosts=[f"vm{rank}"],
        )
        for rank in range(ranks)
    }
