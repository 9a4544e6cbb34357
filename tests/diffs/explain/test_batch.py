"""Another batch is not another speed of the device: a kernel with as many blocks as the device has takes longer for more."""

from __future__ import annotations

import pytest

from stepscope.diffs.data.samples import Samples, combine_ranks
from stepscope.diffs.noise.machine_speed import DEVICE, Speeds, estimate_speeds
from tests.builders.jobs.rank_samples import rank_samples

OPTIMIZER = [f"aten::_foreach_{name}" for name in ("add_", "mul_", "sqrt", "div_", "lerp_")]
LAYERS = ["aten::mm", "aten::gelu", "aten::softmax", "aten::layer_norm", "aten::sum"]


def job(batch: int, slower: float = 1.0, *, shapes: bool = True, grid: str | None = "132x1x1") -> Samples:
    """A persistent kernel for each op of the layers: its grid tells nothing of the batch unless `grid` is None."""
    ops = {}
    for place, name in enumerate(LAYERS):
        launch = grid or f"{batch * (place + 1)}x1x1"
        ops[name] = (f"[[{batch}, 64]]", launch, batch * 20_000 * (place + 1) * slower)
    for place, name in enumerate(OPTIMIZER):
        ops[name] = ("[[64, 64]]", f"{place + 1}x1x1", 300_000.0 * (place + 1) * slower)
    return combine_ranks([rank_samples(ops, steps=6, shapes=shapes)])


def of_device(found: Speeds) -> float | None:
    return next((each.ratio for each in found.changes if each.what == DEVICE), None)


def test_by_kernels_of_the_same_grid_where_the_batch_is_the_same() -> None:
    assert of_device(estimate_speeds(job(16), job(16, 1.25))) == pytest.approx(1.25, abs=0.01)


def test_by_ops_of_the_same_shapes_where_the_batch_differs() -> None:
    assert of_device(estimate_speeds(job(16), job(24), same_work=False)) == pytest.approx(1, abs=0.01)
    assert of_device(estimate_speeds(job(16), job(24, 1.25), same_work=False)) == pytest.approx(
        1.25, abs=0.01
    )


def test_not_at_all_where_nothing_tells_what_is_the_same() -> None:
    assert of_device(estimate_speeds(job(16, shapes=False), job(24, shapes=False), same_work=False)) is None
    other_grids = [job(batch, shapes=False, grid=None) for batch in (160, 240)]
    assert of_device(estimate_speeds(other_grids[0], other_grids[1])) is None
