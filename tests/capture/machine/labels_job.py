"""A job whose losses ignore labels: python labels_job.py FOLDER HOW. Says which functions are PyTorch's own afterwards."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy, log_softmax, nll_loss

import stepscope
from stepscope.capture.machine import labels

ROWS, CLASSES = 1200, 2048
OWN = {name: getattr(torch._C._nn, name) for name in ("cross_entropy_loss", "nll_loss_nd")}


def target(ignored: int, index: int = -100, rows: int = ROWS) -> Any:
    """Labels of which exactly the first so many are ignored."""
    found = torch.randint(8, CLASSES, (rows,))
    found[:ignored] = index
    return found


def logits(*shape: int) -> Any:
    """Of nothing in particular."""
    return torch.randn(*(shape or (ROWS, CLASSES)), requires_grad=True)


def usual() -> None:
    """A module, a name that was imported before, three dimensions, and another index."""
    torch.nn.CrossEntropyLoss()(logits(), target(900)).backward()
    cross_entropy(logits(2, CLASSES, 700), target(350, rows=1400).view(2, 700))
    nll_loss(log_softmax(logits(1000, 2500), 1), target(250, 7, rows=1000), ignore_index=7)


def small() -> None:
    """Few rows, few classes, probabilities; what is written to afterwards, or is in a transform of functions."""
    cross_entropy(logits(999, CLASSES), target(900, rows=999))
    cross_entropy(logits(ROWS, 1999), target(ROWS))
    cross_entropy(logits(), logits().softmax(1))
    labels_of_batch = target(900)
    cross_entropy(logits(), labels_of_batch)
    labels_of_batch.fill_(1)
    wanted = target(900)
    torch.func.grad(lambda each: cross_entropy(each, wanted))(logits().detach())


def wrong() -> None:
    """The job's own error stays what it is."""
    for rows in (ROWS, ROWS - 1):
        try:
            torch._C._nn.cross_entropy_loss(logits(), target(3, rows=rows), torch.ones(3))
        except (RuntimeError, ValueError):
            continue
        raise AssertionError("nothing was wrong")


def loss_of(each: Any, wanted: Any) -> Any:
    """To be compiled."""
    return cross_entropy(each, wanted)


before = torch.compile(loss_of, backend="aot_eager")
inside = torch.compile(lambda each, wanted: 2 * loss_of(each, wanted), backend="aot_eager")


def traced() -> None:
    """A loss that was compiled before, one that is compiled in the window, and one that is scripted there."""
    before(logits(), target(900)).backward()
    inside(logits(), target(900)).backward()
    torch.jit.script(torch.nn.CrossEntropyLoss())(logits(), target(900))


HOW: dict[str, Callable[[], None]] = {"usual": usual, "small": small, "wrong": wrong, "traced": traced}


def main() -> None:
    """Three steps in the window, and one after; then what is left of it."""
    folder, act = Path(sys.argv[1]), HOW[sys.argv[2]]
    if act is traced:
        before(logits(), target(900)).backward()
    with stepscope.profile(folder, backends=("torch",), telemetry=False) as prof:
        for _ in range(3):
            act()
            prof.step()
    act()
    compiles = torch._dynamo.utils.counters["stats"]["unique_graphs"] if act is traced else 0
    told = {
        "restored": all(getattr(torch._C._nn, name) is own for name, own in OWN.items()),
        "listening": labels._EARS.listener is not None,
        "compiles": compiles,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
