"""What part an event plays, told from its name."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.trace.roles import roles
from stepscope.trace.schema import Role, Text

NAMES = {
    "ProfilerStep#12": "step",
    "ProfilerStep": None,
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__": "input",
    "enumerate(DataPipe)#x": "input",
    "Iterator::Root::Prefetch": "input",
    "IteratorGetNext": "input",
    "torch/utils/data/dataloader.py(700): __next__": "input",
    "torch/utils/data/dataloader.py(428): _get_iterator": "input",
    "torch/utils/data/dataloader.py(1625): _shutdown_workers": "input",
    "Optimizer.step#AdamW.step": "optimizer",
    "Optimizer.zero_grad#SGD.zero_grad": "optimizer",
    "nccl:all_reduce": "collective",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "collective",
    "gloo:all_reduce": "collective",
    "record_param_comms": "collective",
    "all-reduce-start.1": "collective",
    "all-reduce.12.remat": "collective",
    "all-reduce-folder": None,
    "all-gather-dynamic-slice-simplifier": None,
    "reduce-scatter-creator": None,
    "collective-permute-done": "collective",
    "CollectiveReduceV2": "collective",
    "CollectiveBcastRecvV2": "collective",
    "CollectiveExecutor::CompleteParams": None,
    "CollectiveAssignGroupV2": None,
    "NcclAllReduce": "collective",
    "HorovodAllreduce": "collective",
    "HorovodSize": None,
    "c10d::allreduce_": "collective",
    "AddmmBackward0": "backward",
    "autograd::engine::evaluate_function: MmBackward0": "backward",
    "TorchDynamo Cache Lookup": "compile",
    "PjRtCApiClient::Compile": "compile",
    "torch/serialization.py(900): save": "io",
    "forward": "forward",
    "## forward ##": "forward",
    "aten::mm": None,
    "cudaLaunchKernel": None,
    "void cutlass::Kernel<nothing>": None,
    "": None,
}


@pytest.mark.parametrize(("name", "role"), NAMES.items(), ids=lambda value: str(value)[:30])
def test_role(name: str, role: str | None) -> None:
    assert roles(pl.Series([name], dtype=Text)).to_list() == [role]


def test_many_names_at_once_and_none() -> None:
    names = pl.Series([*NAMES, None, *NAMES], dtype=Text)
    assert roles(names).to_list() == [*NAMES.values(), None, *NAMES.values()]
    assert roles(pl.Series([None, None], dtype=Text)).to_list() == [None, None]
    assert roles(pl.Series([], dtype=Text)).dtype == Role


def test_a_role_that_the_reader_gave_wins() -> None:
    given = pl.Series(["io", None], dtype=Role)
    assert roles(pl.Series(["AddmmBackward0", "AddmmBackward0"], dtype=Text), given).to_list() == [
        "io",
        "backward",
    ]
