"""What PyTorch records of a collective: its name, its size, its group, as arguments of events."""

from __future__ import annotations

from typing import Any

from benchmarks.ranks.physics.case import Case
from benchmarks.ranks.physics.program import Call, Stream

_ARGUMENTS = "(ncclDevKernelArgsStorage<4096ul>)"
_LONGEST_LIST = 30  # ranks; PyTorch cuts longer lists in the middle
_DTYPES = {2: ("BFloat16", "bf16"), 4: ("Float", "f32")}
_ANNOTATIONS = {"all_gather": "_all_gather_base", "reduce_scatter": "_reduce_scatter_base"}
_NAMES = {
    "all_reduce": "allreduce",
    "all_to_all": "all_to_allv",
    "all_gather": "_allgather_base",
    "reduce_scatter": "_reduce_scatter_base",
}
_RECEIVING = (Stream.FORWARD_IN, Stream.BACKWARD_IN)


def kernel_name(call: Call) -> str:
    """As NCCL calls it."""
    number = _DTYPES[call.width][1]
    names = {
        "all_reduce": f"AllReduce_Sum_{number}_RING_LL",
        "reduce_scatter": f"ReduceScatter_Sum_{number}_RING_LL",
        "all_gather": "AllGather_RING_LL",
    }
    return f"ncclDevKernel_{names.get(call.operation, 'SendRecv')}{_ARGUMENTS}"


def annotation(call: Call) -> str:
    """As ProcessGroupNCCL annotates it; peers are positions in the group."""
    if call.operation == "send_recv":
        receiving = call.stream in _RECEIVING
        return (
            f"nccl:recv {call.target}<-{call.source}"
            if receiving
            else f"nccl:send {call.source}->{call.target}"
        )
    return f"nccl:{_ANNOTATIONS.get(call.operation, call.operation)}"


def facts(case: Case, rank: int, call: Call, step: int) -> dict[str, Any]:
    """The arguments of `record_param_comms` and of the kernel."""
    sent, received = _splits(case, rank, call, step)
    group = call.group
    return {
        "Collective name": _collective(call),
        "dtype": _DTYPES[call.width][0],
        "In msg nelems": sum(sent),
        "Out msg nelems": sum(received),
        "In split size": _list(sent) if call.operation == "all_to_all" else "[]",
        "Out split size": _list(received) if call.operation == "all_to_all" else "[]",
        "Group size": len(group.ranks),
        "Process Group Name": group.name,
        "Process Group Description": group.description,
        "Process Group Ranks": _list(group.ranks),
        **_peer(call, rank),
    }


def _collective(call: Call) -> str:
    if call.operation == "send_recv":
        return "recv" if call.stream in _RECEIVING else "send"
    return _NAMES[call.operation]


def _peer(call: Call, rank: int) -> dict[str, int | None]:
    """`Rank` is a position in the group, of the peer in a transfer; the other two are ranks of the job."""
    source, target = call.members[0], call.members[1]
    if call.operation != "send_recv":
        return {"Rank": call.group.ranks.index(rank)}
    if call.stream in _RECEIVING:
        return {"Rank": call.source, "Src Rank": source}
    return {"Rank": call.target, "Dst Rank": target}


def _splits(case: Case, rank: int, call: Call, step: int) -> tuple[list[int], list[int]]:
    """Elements to and from each member of an exchange, else in all."""
    layout, conditions = case.job.layout, case.trouble.broken[1]
    place = layout.place(rank)
    own = call.elements * (conditions.tokens[place.dp, step] if call.activations else 1.0)
    whole, share = [round(own)], [round(own / len(call.members))]
    if call.operation != "all_to_all":
        return (
            share if call.operation == "all_gather" else whole,
            share if call.operation == "reduce_scatter" else whole,
        )
    load, dps = conditions.experts[place.pp], [layout.place(member).dp for member in call.members]
    out = [round(own * load[dp % layout.ep] / layout.ep) for dp in dps]
    mine = load[place.dp % layout.ep] / layout.ep
    back = [round(call.elements * conditions.tokens[dp, step] * mine) for dp in dps]
    return (back, out) if call.combine else (out, back)


def _list(values: tuple[int, ...] | list[int]) -> str:
    if len(values) <= _LONGEST_LIST:
        return str(list(values))
    return f"[{', '.join(map(str, values[: _LONGEST_LIST - 1]))}, ..., {values[-1]}]"
