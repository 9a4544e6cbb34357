"""What is sent to the device, by the shapes of the ops that send it: pictures, and how many samples at once."""

from __future__ import annotations

import json
import math

import polars as pl

from stepscope.registers.policy.host_code import PICTURE_COLOURS, PICTURE_SIDE
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_FLOAT = "float"


def sends_pictures(trace: Trace) -> bool:
    """Whether the largest array that is sent has pictures of three colours as 32-bit floats: cameras and files have them as bytes."""
    sent = max(_arrays(trace), key=lambda array: math.prod(array[0]), default=None)
    return sent is not None and sent[1] == _FLOAT and _is_pictures(sent[0])


def samples_sent(trace: Trace) -> int:
    """How many samples a batch has: the longest first dimension of what is sent; 0 where shapes were not recorded."""
    return max((shape[0] for shape, _ in _arrays(trace) if shape), default=0)


def _arrays(trace: Trace) -> list[tuple[list[int], str]]:
    """Shape and type of each kind of array that an op copies to the device."""
    sent = trace.copies.filter(pl.col("direction").cast(pl.String) == "HtoD")["event"]
    links = trace.links.filter(pl.col("why") == "launch", pl.col("to").is_in(sent.implode()))
    senders = ancestors(trace.events, trace.events["kind"] == "op").gather(links["from"]).drop_nulls()
    ops = trace.ops.filter(pl.col("event").is_in(senders.implode()))
    kinds = ops.select(pl.col("shapes", "dtypes").cast(pl.String)).drop_nulls().unique(maintain_order=True)
    return [array for row in kinds.iter_rows() if (array := _first(*row)) is not None]


def _first(shapes: str, dtypes: str) -> tuple[list[int], str] | None:
    """The first tensor of an op, which is what it writes."""
    try:
        shape, dtype = json.loads(shapes)[0], json.loads(dtypes)[0]
    except (ValueError, IndexError, KeyError, TypeError):
        return None
    is_shape = isinstance(shape, list) and all(type(size) is int for size in shape)
    return (shape, dtype) if is_shape and isinstance(dtype, str) else None


def _is_pictures(shape: list[int]) -> bool:
    """Several of them, with the colours before or after height and width."""
    match shape:
        case [_, *_, first, second, third]:
            orders = (first, second, third), (third, first, second)
            return any(
                colours == PICTURE_COLOURS and min(height, width) >= PICTURE_SIDE
                for colours, height, width in orders
            )
    return False
