"""What a collective looks like in a profile: the kernels of NCCL and the size of every transfer."""

from __future__ import annotations

ELEMENTS = 1 << 20
_ARGUMENTS = "(ncclDevKernelArgsStorage<4096ul>)"
KERNELS = {
    "all_reduce": f"ncclDevKernel_AllReduce_Sum_f32_RING_LL{_ARGUMENTS}",
    "barrier": f"ncclDevKernel_AllReduce_Sum_f32_RING_LL{_ARGUMENTS}",  # as NCCL has it
    "all_gather": f"ncclDevKernel_AllGather_RING_LL{_ARGUMENTS}",
    "reduce_scatter": f"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL{_ARGUMENTS}",
    "all_to_all": f"ncclDevKernel_SendRecv{_ARGUMENTS}",
    "send_recv": f"ncclDevKernel_SendRecv{_ARGUMENTS}",
    "broadcast": f"ncclDevKernel_Broadcast_RING_LL{_ARGUMENTS}",
}
