"""The role of an event in training, by its name: input, collective, optimizer, backward, …"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.trace.judged_texts import MOST_ASKED, Judged
from stepscope.trace.lookup import by_name, distinct
from stepscope.trace.schema import Role

_known: Judged[str | None] = Judged()
# The first rule that matches decides. Each name is judged once, however often it occurs.
_RULES: tuple[tuple[str, str], ...] = (
    ("step", r"^ProfilerStep#\d+$"),
    (
        "input",
        r"^enumerate\(Data(Loader|Pipe)\)#|^Iterator(::|GetNext)|^IteratorGetNext|torch/utils/data/.*: (__next__|_next_data|_get_iterator|_shutdown_workers|fetch)$"
        # Loaders that people write and annotate themselves: make_batch, data loading, train.py(7): next_batch.
        r"|(?i)(^|[\s:.$])(make|get|load|next|fetch|prepare|create|generate|sample)_?(mini)?_?batch(es)?$|^(data|batch)[ _-]?load(ing|er)?$|^input[ _-]pipeline$",
    ),
    ("optimizer", r"^Optimizer\.(step|zero_grad)#|^_?fused_adam|^Adam\.step"),
    (
        "collective",
        r"(?i)^(nccl|rccl|oneccl|gloo|ucc|mpi|c10d|hccl)(:|_|dev|kernel|sym)|^record_param_comms$|ncclKernel|ncclDevKernel"
        # XLA's instructions, and not the passes of its compiler: all-reduce-start.3 is one, all-reduce-folder is not.
        r"|^(ragged-?)?(all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|collective-?permute|collective-?broadcast)(-?(start|done)|-scatter)?([_.:(]|thunk|$)"
        # TensorFlow's ops, its own and Horovod's.
        r"|^Collective(Reduce|Gather|Bcast|AllToAll|Permute)\w*$|^_?Nccl(AllReduce|AllGather|Reduce|Broadcast|Send|Recv)"
        r"|^Horovod\w*(reduce|gather|broadcast|alltoall|scatter)\w*$|^CrossReplicaSum$"
        r"|^_(all_gather|reduce_scatter)_base"
        # Kernels that skip NCCL: symmetric memory, serving engines' own all-reduce, device-side libraries.
        r"|cross_device_reduce|multimem_|(one|two)_?shot_all_?reduce|all_?reduce_(fusion_)?kernel|allreduce_fusion|AllReduceKernel"
        r"|userbuffers_|quick_?reduce|nvshmem|mscclpp|ragged_?all_?to_?all",
    ),
    ("backward", r"^autograd::engine::evaluate_function|^[A-Za-z_]\w*Backward\d*$"),
    (
        "compile",
        r"^(TorchDynamo|OutputGraph\.|compile_fx|create_aot_dispatcher|_compile\.|dynamo_timed|Inductor)"
        r"|PjRt\w*::Compile|CompileAndLoad|XlaCompile|BackendCompile|backend_compile|RunHloPasses|XlaCompiler::|compile_or_get_cached",
    ),
    ("io", r"(?i)^(torch/serialization\.py\(\d+\): (save|load)|saveV2|restoreV2|checkpoint|save_checkpoint)"),
    ("forward", r"(?i)^(## )?forward( ##)?$"),
)


def _remembered(texts: pl.Series) -> pl.Series:
    if len(texts) > MOST_ASKED:
        return _judged(texts)
    found = _known.ask(texts.to_list(), lambda fresh: _judged(texts.gather(fresh)).to_list())
    return pl.Series(found, dtype=Role)


def _judged(texts: pl.Series) -> pl.Series:
    text = pl.col("name")
    judged: Any = pl.when(False).then(pl.lit(None, dtype=Role))
    for role, pattern in _RULES:
        judged = judged.when(text.str.contains(pattern)).then(pl.lit(role, dtype=Role))
    found: pl.Series = texts.to_frame("name").select(judged.otherwise(None)).to_series()
    return found


def roles(names: pl.Series, given: pl.Series | None = None) -> pl.Series:
    """The role of each event by its name; a role that the reader gave wins."""
    unique = distinct(names)
    role = _remembered(unique.cast(pl.String))
    known = role.is_not_null()
    found = by_name(names, unique.filter(known), role.filter(known))
    if given is None:
        return found
    rows = given.is_not_null().arg_true()
    return found.scatter(rows, given.gather(rows).cast(Role)) if len(rows) else found
