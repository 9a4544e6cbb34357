"""A job with padded batches: python lengths_job.py FOLDER HOW. Says which functions are PyTorch's own afterwards."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import stepscope
from stepscope.capture.machine import lengths

OWN = {"embedding": torch.embedding, "attention": F.scaled_dot_product_attention, "ctc": torch.ctc_loss}
TABLE = nn.Embedding(500, 8)
FLAGS = nn.Embedding(2, 8)


def padded(longest: int = 64, wanted: tuple[int, ...] = (20, 32, 8, 12), pad: int = 0) -> Any:
    """Ids of samples of these lengths; a token in their midst is the pad, too."""
    ids = torch.full((len(wanted), longest), pad)
    for row, length in zip(ids, wanted, strict=True):
        row[:length] = torch.randint(7, 500, (length,))
        row[length // 2] = pad
    return ids


def attend(mask: Any, longest: int = 64) -> Any:
    """Attention with this mask."""
    query = torch.randn(4, 2, longest, 8)
    return F.scaled_dot_product_attention(query, query, query, attn_mask=mask)


def usual() -> None:
    """Ids that end or begin with padding, masks of all kinds, and lengths of a CTC loss."""
    ids = padded()
    TABLE(ids)
    FLAGS((ids != 0).long())
    TABLE(torch.arange(64).expand(4, 64))
    TABLE(padded(48, (47, 48, 48, 48), pad=3).flip(1))
    seen = torch.arange(64) < torch.tensor([[20], [32], [8], [12]])
    attend(seen[:, None, None].expand(4, 2, 64, 64))
    added = torch.zeros(4, 1, 64, 64).masked_fill(~seen[:, None, None], float("-inf"))
    attend(added.masked_fill(torch.ones(64, 64).triu(1).bool(), torch.finfo(torch.float32).min))
    scores = torch.randn(100, 3, 20).log_softmax(-1)
    nn.CTCLoss()(scores, torch.ones(3, 5, dtype=torch.long), (50, 40, 30), (5, 5, 5))


def inference() -> None:
    """The same without gradients and versions."""
    with torch.inference_mode():
        TABLE(padded())


def full() -> None:
    """Short samples, one sample, a mask for all, a cache with room, one token, what is written to afterwards, and what is in a transform."""
    TABLE(padded(31, (3, 3, 3, 3)))
    TABLE(padded(wanted=(9,)))
    TABLE(torch.zeros(4, 64, dtype=torch.long))
    attend(torch.ones(64, 64).tril().bool())
    attend(None)
    query, cache = torch.randn(4, 2, 16, 8), torch.randn(4, 2, 64, 8)
    room = (torch.arange(64) < 20).expand(4, 1, 16, 64)
    F.scaled_dot_product_attention(query, cache, cache, attn_mask=room)
    ids = padded()
    TABLE(ids)
    ids.fill_(9)
    torch.func.vmap(lambda each: F.embedding(each, TABLE.weight.detach()))(padded()[None])


def compiled_model(ids: Any) -> Any:
    """To be compiled."""
    return attend((ids != 0)[:, None, None]) * TABLE(ids).sum()


before = torch.compile(compiled_model, backend="aot_eager")


def traced() -> None:
    """A model that was compiled before, and the same op by op."""
    before(padded())
    TABLE(padded())


def wrong() -> None:
    """The job's own error stays what it is."""
    calls: list[Callable[[], Any]] = [
        lambda: F.embedding(padded(), FLAGS),
        lambda: attend("x"),
        lambda: torch.embedding(),
    ]
    for call in calls:
        try:
            call()
        except (TypeError, AttributeError):
            continue
        raise AssertionError("nothing was wrong")


HOW: dict[str, Callable[[], None]] = {
    "usual": usual,
    "inference": inference,
    "full": full,
    "traced": traced,
    "wrong": wrong,
}


def main() -> None:
    """Three steps in the window, and one after; then what is left of it."""
    folder, act = Path(sys.argv[1]), HOW[sys.argv[2]]
    if act is traced:
        before(padded())
    with stepscope.profile(folder, backends=("torch",), telemetry=False) as prof:
        for _ in range(3):
            act()
            prof.step()
    act()
    compiles = torch._dynamo.utils.counters["stats"]["unique_graphs"] if act is traced else 1
    now = {"embedding": torch.embedding, "attention": F.scaled_dot_product_attention, "ctc": torch.ctc_loss}
    told = {
        "restored": all(now[name] is own for name, own in OWN.items()),
        "listening": lengths._EARS.listener is not None,
        "compiles": compiles,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
