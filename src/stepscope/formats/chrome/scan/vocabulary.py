"""The arguments that Kineto writes, by the category of the event: which ones get a column of their own."""

from __future__ import annotations

from stepscope.lazy import dataclass
from stepscope.native.json.events import BILLIONTHS, INTEGER, TEXT, TRIPLE

# (name as in the file, column, how its value is kept)
_ARGUMENTS: tuple[tuple[str, str, int], ...] = (
    ("External id", "external_id", INTEGER),
    ("external id", "external_id", INTEGER),
    ("Record function id", "record_function_id", INTEGER),
    ("Ev Idx", "ev_idx", INTEGER),
    ("Sequence number", "sequence", INTEGER),
    ("Fwd thread id", "fwd_thread", INTEGER),
    ("Input Dims", "shapes", TEXT),
    ("Input dims", "shapes", TEXT),
    ("Input type", "dtypes", TEXT),
    ("Input Strides", "strides", TEXT),
    ("Concrete Inputs", "concrete_inputs", TEXT),
    ("Module Hierarchy", "module_hierarchy", TEXT),
    ("Call stack", "call_stack", TEXT),
    ("Python id", "python_id", INTEGER),
    ("Python parent id", "python_parent_id", INTEGER),
    ("Python module id", "python_module_id", INTEGER),
    ("Python thread", "python_thread", INTEGER),
    ("correlation", "correlation", INTEGER),
    ("cbid", "cbid", INTEGER),
    ("cid", "cid", INTEGER),
    ("queued", "queued", INTEGER),
    ("device", "device", INTEGER),
    ("context", "context", INTEGER),
    ("stream", "stream", INTEGER),
    ("priority", "priority", INTEGER),
    ("registers per thread", "registers", INTEGER),
    ("shared memory", "shared_bytes", INTEGER),
    ("blocks per SM", "blocks_per_sm", BILLIONTHS),
    ("warps per SM", "warps_per_sm", BILLIONTHS),
    ("est. achieved occupancy %", "occupancy", BILLIONTHS),
    ("grid", "grid", TRIPLE),
    ("block", "block", TRIPLE),
    ("graph id", "graph_id", INTEGER),
    ("graph node id", "graph_node", INTEGER),
    ("bytes", "bytes", INTEGER),
    ("size", "size", INTEGER),
    ("memory bandwidth (GB/s)", "bandwidth", BILLIONTHS),
    ("Total Allocated", "total_allocated", INTEGER),
    ("Total Reserved", "total_reserved", INTEGER),
    ("Addr", "address", INTEGER),
    ("Bytes", "memory_bytes", INTEGER),
    ("Device Id", "device_id", INTEGER),
    ("Device Type", "device_type", INTEGER),
    ("cuda_sync_kind", "sync_kind", TEXT),
    ("wait_on_stream", "wait_on_stream", INTEGER),
    ("wait_on_cuda_event_id", "wait_on_event", INTEGER),
    ("wait_on_cuda_event_record_corr_id", "wait_on_record", INTEGER),
    ("Collective name", "collective", TEXT),
    ("dtype", "dtype", TEXT),
    ("In msg nelems", "elements", INTEGER),
    ("Out msg nelems", "elements_out", INTEGER),
    ("Group size", "group_size", INTEGER),
    ("Process Group Name", "group", TEXT),
    ("Process Group ID", "group", TEXT),
    ("Process Group Description", "group_description", TEXT),
    ("Process Group Ranks", "group_ranks", TEXT),
    ("Seq", "collective_sequence", INTEGER),
    ("Src Rank", "peer", INTEGER),
    ("Dst Rank", "peer", INTEGER),
    ("Rank", "rank", INTEGER),
    ("finished", "finished", INTEGER),
    ("Device", "op_device", INTEGER),
    ("Trace name", "trace_name", TEXT),
    ("Trace iteration", "trace_iteration", INTEGER),
    ("external ts", "external_ts", INTEGER),
    ("kind", "rocm_kind", TEXT),
    ("In split size", "in_split", TEXT),
    ("Out split size", "out_split", TEXT),
    ("Global rank start", "global_rank_start", INTEGER),
    ("Global rank stride", "global_rank_stride", INTEGER),
)

_ON_DEVICE = ("external_id", "device", "context", "stream", "correlation")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "none": (),
    "op": (
        "external_id",
        "record_function_id",
        "ev_idx",
        "sequence",
        "fwd_thread",
        "shapes",
        "dtypes",
        "strides",
        "concrete_inputs",
        "module_hierarchy",
        "call_stack",
        "finished",
        "op_device",
        "trace_name",
        "trace_iteration",
    ),
    "python": ("python_id", "python_parent_id", "python_module_id", "python_thread", "ev_idx"),
    "runtime": ("external_id", "cbid", "cid", "correlation", "external_ts"),
    "kernel": (
        *_ON_DEVICE,
        "queued",
        "priority",
        "registers",
        "shared_bytes",
        "blocks_per_sm",
        "warps_per_sm",
        "occupancy",
        "grid",
        "block",
        "graph_id",
        "graph_node",
        "rocm_kind",
    ),
    "copy": (*_ON_DEVICE, "bytes", "size", "bandwidth", "graph_id", "graph_node", "rocm_kind"),
    "memory": (
        "total_allocated",
        "total_reserved",
        "address",
        "memory_bytes",
        "device_id",
        "device_type",
        "ev_idx",
        "finished",
    ),
    "sync": (*_ON_DEVICE, "sync_kind", "wait_on_stream", "wait_on_event", "wait_on_record"),
    "collective": (
        "collective",
        "dtype",
        "elements",
        "elements_out",
        "group_size",
        "group",
        "group_description",
        "group_ranks",
        "collective_sequence",
        "peer",
        "rank",
        "in_split",
        "out_split",
        "global_rank_start",
        "global_rank_stride",
    ),
}
_CATEGORIES: dict[str, tuple[str, ...]] = {
    "op": ("cpu_op", "user_annotation", "gpu_user_annotation", "Operator"),
    "python": ("python_function", "PythonFunction"),
    "runtime": (
        "cuda_runtime",
        "cuda_driver",
        "Runtime",
        "xpu_runtime",
        "xpu_driver",
        "mtia_runtime",
        "glow_runtime",
        "privateuse1_runtime",
        "privateuse1_driver",
    ),
    "kernel": ("kernel", "Kernel", "mtia_ccp_events", "hpu_op"),
    "copy": ("gpu_memcpy", "gpu_memset", "Memcpy", "Memset"),
    "memory": ("cpu_instant_event",),
    "sync": ("cuda_sync", "cuda_event", "xpu_sync"),
}
_AXES = ("_x", "_y", "_z")


@dataclass(frozen=True)
class Vocabulary:
    """The scanner's orders, and how to name what it brings back."""

    keys: list[tuple[bytes, int, int]]
    slot_count: int
    categories: list[tuple[bytes, int]]
    layouts: list[list[int]]
    trigger: tuple[int, int]  # an argument of collectives, whatever the event
    fallback: tuple[int, int]  # the first writers gave memory events no category
    columns: dict[str, list[str]]  # by layout; a triple is three columns
    billionths: frozenset[str]
    texts: frozenset[str]


def _vocabulary() -> Vocabulary:
    slots: dict[str, int] = {}
    kept: dict[str, int] = {}
    for _, column, how in _ARGUMENTS:
        if column not in kept:
            slots[column] = sum(3 if kind == TRIPLE else 1 for kind in kept.values())
            kept[column] = how
    names = list(_COLUMNS)
    return Vocabulary(
        keys=[(text.encode(), slots[column], how) for text, column, how in _ARGUMENTS],
        slot_count=sum(3 if how == TRIPLE else 1 for how in kept.values()),
        categories=[
            (c.encode(), names.index(layout)) for layout, found in _CATEGORIES.items() for c in found
        ],
        layouts=[
            [slots[column] + axis for column in columns for axis in range(3 if kept[column] == TRIPLE else 1)]
            for columns in _COLUMNS.values()
        ],
        trigger=(slots["collective"], names.index("collective")),
        fallback=(slots["memory_bytes"], names.index("memory")),
        columns={
            layout: [
                column + axis for column in columns for axis in (_AXES if kept[column] == TRIPLE else ("",))
            ]
            for layout, columns in _COLUMNS.items()
        },
        billionths=frozenset(column for column, how in kept.items() if how == BILLIONTHS),
        texts=frozenset(column for column, how in kept.items() if how == TEXT),
    )


VOCABULARY = _vocabulary()
