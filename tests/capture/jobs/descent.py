"""An optimizer of a job's own, for PyTorch: the first of PyTorch's imports torch._dynamo, which takes each process two seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Descent(torch.optim.Optimizer):
    """Gradient descent."""

    def __init__(self, params: Iterable[torch.Tensor]) -> None:
        super().__init__(params, {})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        for each in self.param_groups[0]["params"]:
            each.grad = None

    @torch.no_grad()
    def step(self, closure: object = None) -> None:
        for each in self.param_groups[0]["params"]:
            each -= 1e-4 * each.grad
